"""What can be known about the deployment files without an engine to run them: schemas, lints, and that they agree with
the program. ``python -m deploy.validation`` says everything that is wrong; ``make lint`` runs it.

``checks`` puts these together: ``linters`` runs tools that packages bring; ``manifests`` builds the kustomizations and
validates every object; ``processes`` reads compose and manifests into one form, which ``rules`` compares with the
program (``variables``, ``shared.topics``, chip sheets, drains); ``images`` looks at the Dockerfile's context.
"""

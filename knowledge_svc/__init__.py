"""knowledge_svc owns the corpus of documents and the skills.

It consumes ``search.facts.v1`` in a group of its own, distils skills from parent and child measurements and publishes
them on ``knowledge.skills.v1``. It answers the synthesizer's questions through ``shared.knowledge.Knowledge``: in
process where programs embed it, over gRPC (``grpc_api``) otherwise. Any number of replicas share one store.
"""

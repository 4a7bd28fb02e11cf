"""What a process that runs somebody's text may know."""

from shared.child_environment import without_secrets


def test_addresses_and_credentials_stay_with_the_service():
    secret = ("STORE_URL", "MODEL_API_KEY", "KERNELEVOLVE_TOKEN", "GRPC_TOKENS", "AWS_SECRET_ACCESS_KEY", "db_password")
    plain = {"PATH": "/bin", "OMP_NUM_THREADS": "1", "PYTHONPATH": "."}
    assert without_secrets(plain | dict.fromkeys(secret, "s")) == plain

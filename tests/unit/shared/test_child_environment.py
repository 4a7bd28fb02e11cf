"""What a process that runs somebody's text may know."""

from shared.child_environment import without_secrets
from shared.redaction import never_show


def test_addresses_and_credentials_stay_with_the_service():
    secret = ("STORE_URL", "MODEL_API_KEY", "KERNELEVOLVE_TOKEN", "GRPC_TOKENS", "AWS_SECRET_ACCESS_KEY", "db_password")
    plain = {"PATH": "/bin", "OMP_NUM_THREADS": "1", "PYTHONPATH": "."}
    assert without_secrets(plain | dict.fromkeys(secret, "s")) == plain


def test_a_variable_whose_name_says_nothing_stays_with_the_service():
    assert without_secrets({"MY_THING": "s", "SENTRY": "https://k@host/1", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_what_was_told_to_be_secret_is_not_passed_on_under_a_name_that_would_be():
    never_show("planted-by-the-test-of-children")
    assert without_secrets({"TORCH_THING": "Bearer planted-by-the-test-of-children", "TORCH_HOME": "/t"}) == {
        "TORCH_HOME": "/t"
    }


def test_a_compiler_still_finds_what_it_is_told_to_use():
    told = {"CXX": "g++-12", "CPATH": "/i", "LD_LIBRARY_PATH": "/l", "LC_ALL": "C", "CUDA_HOME": "/c", "TMPDIR": "/t"}
    assert without_secrets(told) == told

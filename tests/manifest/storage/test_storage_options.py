from __future__ import annotations

import pickle

import pytest

from manifest.storage.bucket import open_bucket
from manifest.storage.resolve import file_io_for
from manifest.storage.schemes import FAMILIES, StoreFamily, object_place
from manifest.storage.storage_options import StorageOptions, canonical
from paimon_base.errors import InvalidArgument, UnsupportedOption
from tests.children import run_python

KEY, SECRET, TOKEN = "AKIA-who-it-is", "s3cr3t/of+him==", "tok-of-the-session"

SPELLINGS = {
    "endpoint": [
        "s3.endpoint",
        "s3a.endpoint",
        "fs.s3a.endpoint",
        "fs.s3.endpoint",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "fs.oss.endpoint",
    ],
    "access_key_id": [
        "s3.access-key",
        "s3.access.key",
        "fs.s3a.access.key",
        "fs.s3.accessKeyId",
        "AWS_ACCESS_KEY_ID",
        "fs.oss.accessKeyId",
    ],
    "secret_access_key": ["s3.secret-key", "fs.s3a.secret.key", "fs.s3.accessKeySecret", "AWS_SECRET_ACCESS_KEY", "fs.oss.accessKeySecret"],
    "session_token": ["s3.session.token", "fs.s3a.session.token", "fs.s3.securityToken", "AWS_SESSION_TOKEN", "s3.session-token"],
    "region": ["s3.region", "s3.endpoint.region", "fs.s3a.endpoint.region", "fs.s3.region", "AWS_REGION", "AWS_DEFAULT_REGION"],
    "path_style": ["s3.path.style.access", "s3.path-style-access", "fs.s3a.path.style.access"],
    "account_key": [
        "azure.account-key",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_KEY",
        "fs.azure.account.key.acme.dfs.core.windows.net",
    ],
    "service_account": [
        "gs.service-account",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "fs.gs.auth.service.account.json.keyfile",
    ],
    "role_arn": ["s3.role-arn", "fs.s3a.assumed.role.arn", "AWS_ROLE_ARN"],
}


@pytest.mark.parametrize(("ours", "spelled"), [(ours, spelled) for ours, every in SPELLINGS.items() for spelled in every])
def test_everybody_s_spelling_is_taken(ours, spelled):
    assert canonical(spelled)[1] == ours


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"s3.acces-key": "x"}, "did you mean 's3.access-key'"),
        ({"s3.path.stile.access": "true"}, "did you mean 's3.path-style-access'"),
        ({"bucket": "4"}, "not a store option"),
        ({"s3.secret-kei": "x"}, "'s3.secret-kei': is not a store option; did you mean 's3.secret-key'"),
        ({"s3.path.style.access": "yes"}, "'s3.path.style.access' must be 'true' or 'false'"),
        ({"s3.access-key": None}, "one line of text, not NoneType"),
        ({"storage.timeout": "soon"}, "'soon' is not a duration"),
        ({"storage.max-retries": "-1"}, "a number from 0"),
        ({"s3.region": "a", "fs.s3a.endpoint.region": "b"}, "are the same option, with two values"),
        ({1: "x"}, "a mapping of names to values"),
        (7, "a mapping of names to values"),
    ],
)
def test_what_is_no_option_is_refused_by_name(given, said):
    with pytest.raises((UnsupportedOption, InvalidArgument), match=said):
        StorageOptions.of(given)


HADOOP, AWS = "org.apache.hadoop.fs.s3a", "software.amazon.awssdk.auth.credentials"
KEYS = {"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET}


@pytest.mark.parametrize(
    ("classes", "given", "anonymous"),
    [
        (f"{HADOOP}.AnonymousAWSCredentialsProvider", {}, True),
        (f"{HADOOP}.SimpleAWSCredentialsProvider, {HADOOP}.AnonymousAWSCredentialsProvider", {}, True),
        (f"{HADOOP}.SimpleAWSCredentialsProvider,{HADOOP}.AnonymousAWSCredentialsProvider", KEYS, False),
        (f"{HADOOP}.TemporaryAWSCredentialsProvider", {**KEYS, "fs.s3a.session.token": TOKEN}, False),
        ("com.amazonaws.auth.EnvironmentVariableCredentialsProvider,com.amazonaws.auth.InstanceProfileCredentialsProvider", {}, False),
        (f"{AWS}.DefaultCredentialsProvider", KEYS, False),
        (f"{HADOOP}.auth.IAMInstanceCredentialsProvider", {}, False),
    ],
)
def test_hadoop_s_classes_of_credentials_are_what_the_client_library_does(classes, given, anonymous):
    options = StorageOptions.of({"fs.s3a.aws.credentials.provider": classes, **given})
    rest = StorageOptions.of({**given, **({"s3.anonymous": "true"} if anonymous else {})})
    assert options.config(object_place("s3://bucket/t")) == rest.config(object_place("s3://bucket/t"))


@pytest.mark.parametrize(
    ("classes", "given", "said"),
    [
        (f"{HADOOP}.auth.AssumedRoleCredentialProvider", {}, "is not a supported class"),
        (f"{HADOOP}.AnonymousAWSCredentialsProvider", KEYS, "is not a class that uses keys"),
        (f"{HADOOP}.SimpleAWSCredentialsProvider", {}, "uses keys, but none are given"),
        (f"{HADOOP}.AnonymousAWSCredentialsProvider,{AWS}.DefaultCredentialsProvider", {}, "cannot list an anonymous class"),
    ],
)
def test_other_classes_of_credentials_are_refused_by_the_option_s_name(classes, given, said):
    with pytest.raises(UnsupportedOption, match=rf"option 'fs\.s3a\.aws\.credentials\.provider': .*{said}"):
        StorageOptions.of({"fs.s3a.aws.credentials.provider": classes, **given})


def test_a_secret_under_a_wrong_name_is_not_in_the_message():
    with pytest.raises(UnsupportedOption) as caught:
        StorageOptions.of({"s3.seekrit": SECRET})
    assert SECRET not in str(caught.value)


def test_what_is_shown_has_no_secret_and_who_it_belongs_to_neither():
    options = StorageOptions.of({"s3.access-key": KEY, "s3.secret-key": SECRET, "s3.session-token": TOKEN, "s3.region": "eu-north-1"})
    io, _ = file_io_for("s3://bucket/t", storage_options=options)
    for shown in (repr(options), str(options), repr(io), f"{io}", repr([options])):
        assert not [secret for secret in (KEY, SECRET, TOKEN) if secret in shown]
        assert "eu-north-1" in shown
    assert pickle.loads(pickle.dumps(io)) == io, "it travels to tasks with what they need"


def test_configurations_of_the_client_library(monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    path_style = StorageOptions.of({"s3.endpoint": "http://127.0.0.1:9000", "s3.path.style.access": True})
    place = object_place("s3://bucket/t")
    assert path_style.config(place) == {"endpoint": "http://127.0.0.1:9000", "virtual_hosted_style_request": False, "region": "us-east-1"}
    assert path_style.allows_http(place)
    oss = StorageOptions.of({"fs.oss.endpoint": "oss-cn-x.aliyuncs.com", "fs.oss.accessKeyId": KEY, "fs.oss.accessKeySecret": SECRET})
    config = oss.config(object_place("oss://bucket/t"))
    assert (config["endpoint"], config["virtual_hosted_style_request"]) == ("https://bucket.oss-cn-x.aliyuncs.com", True)
    assert not oss.allows_http(object_place("oss://bucket/t"))
    with pytest.raises(UnsupportedOption, match="needs an endpoint"):
        StorageOptions().config(object_place("oss://bucket/t"))
    with pytest.raises(InvalidArgument, match="set both the access key and its secret"):
        StorageOptions.of({"s3.access-key": KEY}).config(place)
    azure = StorageOptions.of({"azure.account-key": "a2V5"}).config(object_place("abfss://data@acme.dfs.core.windows.net/t"))
    assert azure == {"account_name": "acme", "account_key": "a2V5"}


@pytest.mark.parametrize("scheme", sorted(scheme for scheme, family in FAMILIES.items() if family is not StoreFamily.HDFS))
def test_every_scheme_opens(scheme, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    options = {
        "fs.oss.endpoint": "oss-cn-x.aliyuncs.com",
        "s3.access-key": KEY,
        "s3.secret-key": SECRET,
        "azure.account-name": "acme",
        "azure.account-key": "a2V5",
        "gs.service-account-key": '{"type": "service_account", "private_key": "x", "private_key_id": "y", "client_email": "a@b", "disable_oauth": true}',
    }
    bucket = open_bucket(object_place(f"{scheme}://bucket-of-{scheme}/t"), StorageOptions.of(options))
    assert bucket.path("a/b") == f"{scheme}://bucket-of-{scheme}/a/b"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ftp://name:8020/w/t", "scheme 'ftp:' is not supported"),
        ("s3:/bucket/t", "s3://bucket/path"),
        ("s3:///t", "s3://bucket/path"),
        ("s3://AKIA:secret@bucket/t", "credentials in a path would be visible"),
    ],
)
def test_paths_that_name_no_bucket(path, said):
    with pytest.raises((UnsupportedOption, InvalidArgument), match=said) as caught:
        file_io_for(path)
    assert "AKIA:secret" not in str(caught.value)


@pytest.mark.slow
def test_nothing_of_stores_is_imported_for_local_tables(tmp_path):
    code = (
        "import sys, pyarrow as pa; from pyspark_paimon import Table; "
        f"t = Table.create({str(tmp_path / 't')!r}, 'id INT', primary_keys=['id'], options={{'bucket': '1'}}); "
        "t.write(pa.table({'id': pa.array([1], pa.int32())})); t.scan('id = 1').to_arrow(); t.compact(full=True); "
        "print([name for name in sys.modules if name.split('.')[0] == 'obstore'])"
    )
    done = run_python(code)
    assert done.stdout.strip() == "[]"


def test_a_scheme_without_its_extra_says_what_to_install(tmp_path):
    (tmp_path / "obstore.py").write_text("raise ImportError('not installed')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pyspark_paimon import Table\n"
        "try: Table.open('s3://bucket/t')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = run_python(code)
    assert done.stdout.startswith("UnsupportedOption")
    assert "pip install 'pyspark-paimon[objectstore]'" in done.stdout

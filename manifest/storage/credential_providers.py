"""Hadoop's way to say whose credentials a bucket is reached with: a list of classes, of which those count that do what is done here anyway.

The client library takes the keys that it is given, else those of the environment, a token file, a container or the machine, in this
order. So such a class asks for nothing more; one that signs nothing is a switch, and one that asks a service of its own is refused.
"""

from __future__ import annotations

from fileindex.base.errors import UnsupportedOption

_GIVEN = frozenset(
    {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider", "BasicAWSCredentialsProvider", "StaticCredentialsProvider"}
)
_NOBODY = frozenset({"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"})
_FOUND = frozenset(
    {
        "EnvironmentVariableCredentialsProvider",
        "ContainerCredentialsProvider",
        "EC2ContainerCredentialsProviderWrapper",
        "IAMInstanceCredentialsProvider",
        "InstanceProfileCredentialsProvider",
        "WebIdentityTokenCredentialsProvider",
        "WebIdentityTokenFileCredentialsProvider",
    }
)
_EVERY = frozenset({"DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider"})


def is_anonymous(option: str, classes: str, *, has_keys: bool) -> bool:
    """Whether the list ``classes`` means that nobody signs; ``has_keys``: an access key is given beside it.

    Packages of the classes do not count, for they differ between versions. Raises ``UnsupportedOption`` for a class that is none of those,
    and for a list that would not take the keys that are given.

    >>> is_anonymous("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider", has_keys=False)
    True
    """
    names = [part.strip().rpartition(".")[2].rpartition("$")[2] for part in classes.split(",") if part.strip()]
    for name in names:
        if name not in _GIVEN | _NOBODY | _FOUND | _EVERY:
            known = ", ".join(sorted(_GIVEN | _NOBODY | _FOUND | _EVERY))
            raise UnsupportedOption(
                option, f"is of no class whose credentials are found here, which are {known}; give keys or a token instead"
            )
    wanted = set(names)
    if has_keys:
        if not wanted & (_GIVEN | _EVERY):
            raise UnsupportedOption(option, "is of no class that takes keys, and there are some: leave one or the other out")
        return False
    if wanted & _NOBODY and wanted & (_FOUND | _EVERY):
        raise UnsupportedOption(option, "is of several classes, of which one signs nothing: name that alone, or the others")
    if wanted and wanted <= _GIVEN:
        raise UnsupportedOption(option, "is of a class that takes keys, and there are none beside it: 's3.access-key', 's3.secret-key'")
    return bool(wanted & _NOBODY)


__all__ = ["is_anonymous"]

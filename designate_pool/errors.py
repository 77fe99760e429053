"""All exceptions of the project.

The docstring of an exception is its message; the values in braces are keyword arguments and attributes.  ``kwargs``
keeps them, so that an error can be sent over RPC and raised there as the same class.

``code`` is the status over HTTP, and ``type`` the code of the error for clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Why a project may not do what only the owner of a zone may.
SHARED = 'it belongs to another project, which shares it with yours for recordsets of your own'


class PoolError(Exception):
    """Something went wrong in the pool.

    :cvar seconds: after which the same request may succeed, for HTTP clients; None where that is not known
    :cvar is_logged: whether its cause has been logged where it was noticed
    """

    code = 500
    type = 'internal_error'
    seconds: int | None = None
    is_logged = False

    def __init__(self, **facts: Any) -> None:
        super().__init__()
        self.kwargs = facts
        for name, value in facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        text = (type(self).__doc__ or '').partition('\n\n')[0].strip().format(**self.kwargs)
        return text[:-1] if text.endswith('..') else text  # after the name of a zone


class Refused(PoolError):
    """{why}"""

    def __init__(self, type: str, why: str, code: int = 400) -> None:
        """Make an error that nothing here has to tell from others; *why* is the whole sentence."""
        super().__init__(type=type, why=why, code=code)


class BadInput(PoolError):
    """The request is wrong: {why}."""

    code = 400
    type = 'bad_request'


class InvalidField(BadInput):
    """{field}: {why}."""

    #: Whoever raises it may give another one, such as ``invalid_limit``.
    type = 'invalid_object'

    @classmethod
    def of(cls, mistakes: Sequence[tuple[str, str]]) -> InvalidField:
        """The error that tells of several fields, each with what is wrong: the first, and every one in ``all``."""
        field, why = mistakes[0]
        return cls(field=field, why=why, **({'all': list(mistakes)} if len(mistakes) > 1 else {}))


class InvalidUuid(InvalidField):
    """Invalid UUID {field}: {given}"""

    type = 'invalid_uuid'


class TransferRejected(BadInput):
    """What the master sent was refused: {why}."""

    type = 'transfer_rejected'


class WrongContentType(BadInput):
    """The body must be {wanted}, not {found}."""

    code = 415
    type = 'unsupported_content_type'


class Unauthorized(PoolError):
    """The request needs a token: {why}."""

    code = 401
    type = 'unauthorized'


class Forbidden(PoolError):
    """You may not {what}: {why}."""

    code = 403
    type = 'forbidden'


class OverLimit(PoolError):
    """There are too many requests ({limit}); try again in {seconds} s."""

    code = 429
    type = 'over_limit'


class NotFound(PoolError):
    """There is no {what}."""

    code = 404
    type = 'not_found'


class DomainNotFound(NotFound):
    """There is no zone {domain}."""

    type = 'zone_not_found'


class NotSigned(NotFound):
    """The zone {domain} is not signed here."""

    type = 'zone_not_signed'


class ContentsNotKept(NotFound):
    """The contents of {domain} at {at} are not known: {why}."""

    type = 'contents_not_kept'


class RecordSetNotFound(NotFound):
    """There is no recordset {recordset}."""

    type = 'recordset_not_found'


class PoolNotFound(NotFound):
    """There is no pool {pool}."""

    type = 'pool_not_found'


class UnknownPool(PoolNotFound):
    """{option} is {pool}: no such pool ({known}); correct it, or 'designate-pool-manage pool create {pool}'."""


class OverQuota(PoolError):
    """The quota {quota} allows {limit}; this would make it {found}; an administrator can raise it."""

    code = 413
    type = 'over_quota'


class Conflict(PoolError):
    """The request conflicts with what exists: {why}."""

    code = 409
    type = 'conflict'


class DuplicateDomain(Conflict):
    """The zone {domain} exists already."""

    type = 'duplicate_zone'


class NameTaken(Conflict):
    """The name {domain} is not free: it, or one above or below it, is in use."""

    type = 'name_taken'


class DuplicateRecordSet(Conflict):
    """The recordset {name} {rtype} exists already."""

    type = 'duplicate_recordset'


class LostRace(Conflict):
    """Another request changed the same {what} first; try again."""

    type = 'lost_race'


class PreconditionFailed(PoolError):
    """{what} has changed since you read it: {how}; read it again, and decide anew."""

    code = 412
    type = 'precondition_failed'


class DomainBeingDeleted(Conflict):
    """The zone {domain} is being deleted."""

    type = 'domain_being_deleted'


class Locked(Conflict):
    """{what} is locked: {reason}; {who} may unlock it."""

    type = 'locked'

    @classmethod
    def of(cls, what: str, locked: Any) -> Locked:
        """The error about *locked*, a domain or a recordset."""
        return cls(what=what, reason=locked.lock_reason,
                   who='only an administrator' if locked.locked_by_admin else 'its owner')


class ManagedRecordSet(BadInput):
    """The recordset {name} {rtype} is {why} and cannot be changed by hand."""

    def __init__(self, name: str, rtype: str, why: str = "generated from the pool's settings") -> None:
        super().__init__(name=name, rtype=rtype, why=why)


class WrongServerState(Conflict):
    """Server {server} is {state}: {why}."""

    type = 'wrong_server_state'


class WrongPlanState(Conflict):
    """The plan {plan} is {state}: {why}."""

    type = 'wrong_plan_state'


class BadConfiguration(PoolError):
    """The configuration has mistakes ({count}):{listing}"""

    code = 409
    type = 'bad_configuration'


class DatabaseNotReady(PoolError):
    """The database is at revision {found}, not {wanted}; run 'designate-pool-manage database upgrade'."""

    type = 'database_not_ready'


class DatabaseTooNew(PoolError):
    """The database is at revision {found}, newer than this program knows ({wanted}); install a newer version."""

    type = 'database_too_new'


class ServiceUnavailable(PoolError):
    """{service} does not answer: {why}."""

    code = 503
    type = 'service_unavailable'


class DatabaseUnavailable(ServiceUnavailable):
    """{service} does not answer: {why}."""

    is_logged = True


class TooManyWaits(PoolError):
    """{limit} requests {whose}are waiting for zones already; ask again in a moment."""

    code = 503
    type = 'too_many_waits'
    seconds = 5

    def __init__(self, limit: int, whose: str = '') -> None:
        """*whose* is '', or 'of the project ' with the space at the end."""
        super().__init__(limit=limit, whose=whose)


class RecordTooLarge(PoolError):
    """{owner} {rtype} takes {size} octets; a DNS message has room for {room}."""

    type = 'record_too_large'


class ServiceFailed(PoolError):
    """{service} failed in {method} ({kind}); its log says more."""


class BackendError(PoolError):
    """{why}"""

    type = 'backend_error'
    retryable = True
    #: A :class:`~designate_pool.model.Reason`; None if whoever raised it did not set one.
    reason: Any = None


class BackendRefused(BackendError):
    """{why}"""

    retryable = False


class BackendUnreachable(BackendError):
    """{why}"""


class ZoneError(BadInput):
    """{why}."""

    type = 'invalid_zone'


class SupportsException(BadInput):
    """{target}: {why}."""

    type = 'not_supported'


class ProcessorException(BadInput):
    """{processor}: {why}."""

    type = 'processor_refused'


class SourceError(PoolError):
    """{source} cannot be read: {why}."""

    code = 502
    type = 'source_error'


class UnsafePlan(Conflict):
    """{zone} on {target}: {why}."""

    type = 'unsafe_plan'
    #: Which of the dangers that :func:`designate_pool.planner.plan.safety.dangers` finds; ``empty_source`` for one.
    kind = ''


class UnsafePlans(UnsafePlan):
    """{count} plans are unsafe:{listing}"""

    #: ``kwargs['zones']`` has the name of each zone once.


class UnreadableSecret(PoolError):
    """The secret of the key {name} cannot be read from the database: {why}."""

    type = 'unreadable_secret'


class KeyUnavailable(UnreadableSecret):
    """{name} cannot be used: {why}."""

    code = 503
    type = 'key_unavailable'


class PlanNotFound(NotFound):
    """There is no plan {plan}."""

    type = 'plan_not_found'


class PlanMoved(Conflict):
    """The plan {plan} is not applied: {why}."""

    type = 'plan_moved'


class ChangeMoved(Conflict):
    """The change {change} is not made: {why}."""

    type = 'change_moved'


class WaitsForApproval(PoolError):
    """The change of {domain.name} waits for approval as {plan}."""

    code = 202
    type = 'waits_for_approval'
    #: ``kwargs`` has the *domain*, its *changes* as JSON, and the *value* that the request asks for, as it will be.


class ApiRefused(Refused):
    """{why}"""


class ApiUnreachable(ServiceUnavailable):
    """The API at {url} does not answer: {why}."""

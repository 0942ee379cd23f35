import type { Clock, Forward, Outcome } from '../core/index.ts'
import { createResponsePolicy } from '../http/index.ts'
import type { Backend } from '../net/index.ts'
import { Relay } from './relay.ts'
import type { ForwardOptions, ForwardRoute } from './route.ts'
import { UpgradeRelay } from './upgrade.ts'

export { CLIENT_GONE_STATUS } from './relay.ts'
export type { ForwardOptions } from './route.ts'

export interface ForwardDeps {
  /** Its owner is the route: `close` of the result closes it. */
  readonly backend: Backend
  readonly clock: Clock
}

/**
 * Sealed → streamed answer. `forward` and `upgrade` write into `inbound.response` or say `Again` before a byte of the
 * answer was sent; they throw `Failure` backend_unreachable, backend_timeout, backend_error or bad_request. `Again`
 * credential_rejected is said whatever the body is, and in the last attempt as well; redirect and
 * connection_lost only when the body can be sent again. A client that leaves gives an aborted outcome.
 */
export const createForward = (options: ForwardOptions, deps: ForwardDeps): Forward => {
  const { backend, clock } = deps
  const { path, exactTarget, target, sseKeepAlive } = options
  const responsePolicy = createResponsePolicy()
  const route: ForwardRoute = {
    path,
    exactTarget,
    target,
    sseKeepAlive,
    timeouts: backend.timeouts,
    responsePolicy,
    clock,
  }
  return {
    forward: (sealed) =>
      new Promise<Outcome>((resolve, reject) => {
        new Relay(route, sealed, resolve, reject).start(backend.exchanges, undefined)
      }),
    upgrade: (sealed) =>
      new Promise<Outcome>((resolve, reject) => {
        const protocol = sealed.armed.known.matched.inbound.request.headers.upgrade
        new UpgradeRelay(route, sealed, resolve, reject).start(backend.upgrades, protocol)
      }),
    close: () => backend.close(),
  }
}

import type { Clock, Forward, Outcome, Sealed } from '../core/index.ts'
import { createResponsePolicy } from '../http/index.ts'
import type { Backend } from '../net/index.ts'
import { Relay } from './relay.ts'
import type { ForwardOptions, ForwardRoute } from './route.ts'
import { UpgradeRelay } from './upgrade.ts'

export { CLIENT_GONE_STATUS } from './relay.ts'
export type { ForwardOptions } from './route.ts'

export interface ForwardDeps {
  /** Owned by the route: `close` of the result closes it. */
  readonly backend: Backend
  readonly clock: Clock
}

/**
 * Sealed → streamed response. `forward` and `upgrade` write into `inbound.response` or return `Again` before a byte of the
 * response was sent; they throw `Failure` backend_unreachable, backend_no_answer, backend_timeout, backend_error, egress_proxy_refused or bad_request. `Again`
 * credential_rejected is reported for any body, and in the last attempt as well; redirect and
 * connection_lost only when the body can be sent again. A client that leaves gives an aborted outcome.
 */
export const createForward = (options: ForwardOptions, deps: ForwardDeps): Forward => new RouteForward(options, deps)

const RESPONSE_POLICY = createResponsePolicy()

/** One object per route with the differences between routes: thousands of them do not fit into CPU caches. */
class RouteForward implements Forward, ForwardRoute {
  readonly path: string
  readonly exactTarget: boolean
  readonly target: ForwardOptions['target']
  readonly sseKeepAlive: number
  readonly responsePolicy = RESPONSE_POLICY
  readonly timeouts: Backend['timeouts']
  readonly forwarder: Backend['forwarder']
  readonly clock: Clock
  readonly #backend: Backend

  constructor({ path, exactTarget, target, sseKeepAlive }: ForwardOptions, { backend, clock }: ForwardDeps) {
    this.path = path
    this.exactTarget = exactTarget
    this.target = target
    this.sseKeepAlive = sseKeepAlive
    this.timeouts = backend.timeouts
    this.forwarder = backend.forwarder
    this.clock = clock
    this.#backend = backend
  }

  forward(sealed: Sealed): Promise<Outcome> {
    return new Promise<Outcome>((resolve, reject) => {
      new Relay(this, sealed, resolve, reject).start(this.#backend.exchanges, undefined)
    })
  }

  upgrade(sealed: Sealed): Promise<Outcome> {
    return new Promise<Outcome>((resolve, reject) => {
      const protocol = sealed.inbound.request.headers.upgrade
      new UpgradeRelay(this, sealed, resolve, reject).start(this.#backend.upgrades, protocol)
    })
  }

  close(): Promise<void> {
    return this.#backend.close()
  }
}

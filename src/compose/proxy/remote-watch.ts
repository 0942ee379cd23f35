import { readFile } from 'node:fs/promises'
import type { ResolvedProxy } from '../../load/index.ts'
import { type EgressProxy, probeConnection } from '../../net/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'

/** A remote server that refuses connections or is unreachable. */
export interface UnreachableRemote {
  readonly route: string
  readonly step: string
  readonly code: string
}

/** Milliseconds between probes of a configuration. */
const PERIOD_MS = 30_000
const STEP_MS = 5_000
/** Larger configurations are not probed: the operator runs one route per pod. */
const MAX_ROUTES = 16

/**
 * Connects to the remote server of each route every 30 s without sending a request, for `/readiness`,
 * which the operator reads. Requests do not depend on the result.
 */
export class RemoteWatch {
  readonly #routes: readonly ResolvedRoute[]
  readonly #egressProxy: EgressProxy | undefined
  #unreachable: readonly UnreachableRemote[] | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ routes }: Pick<ResolvedProxy, 'routes'>, egressProxy: EgressProxy | undefined) {
    this.#routes = routes.slice(0, MAX_ROUTES)
    this.#egressProxy = egressProxy
  }

  /** Undefined until the first probe has finished. */
  get unreachable(): readonly UnreachableRemote[] | undefined {
    return this.#unreachable
  }

  start(): void {
    void this.#probe()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #probe(): Promise<void> {
    const found: UnreachableRemote[] = []
    for (const route of this.#routes) {
      if (this.#isClosed) return
      const failed = await this.#failureOf(route)
      if (failed !== undefined) found.push({ route: route.name, ...failed })
    }
    this.#unreachable = found
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#probe(), PERIOD_MS).unref()
  }

  async #failureOf({ target, targetTls }: ResolvedRoute): Promise<{ step: string; code: string } | undefined> {
    const { caCertPath, clientCertFile, clientKeyFile, serverName, insecureSkipVerify } = targetTls ?? {}
    try {
      const [ca, cert, key] = await Promise.all([caCertPath, clientCertFile, clientKeyFile].map(fileAt))
      const tls = { ca, cert, key, serverName, insecureSkipVerify }
      const options = { ...tls, deadlineMs: STEP_MS, egressProxy: this.#egressProxy }
      const { failed } = await probeConnection(target.origin, options)
      return failed === undefined ? undefined : { step: failed.step, code: failed.code }
    } catch {
      return { step: 'tls', code: 'a file of targetTls cannot be read' }
    }
  }
}

const fileAt = (path: string | undefined): Promise<Buffer | undefined> =>
  path === undefined ? Promise.resolve(undefined) : readFile(path)

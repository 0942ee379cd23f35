import type { NamedFile, NamedSecret } from './named-files.ts'
import { fileProblem, type Problem } from './problem.ts'

/** A part of a configuration that can turn out not to work when it is built. */
export type ConfigPart =
  | { readonly route: string }
  | { readonly authServer: string }
  /** `spec.cache` of the ProxyConfig. */
  | { readonly process: 'cache' | 'connections' | 'routes' | 'audit' }
  | { readonly listener: 'listen' | 'admin' }

export const NOWHERE = fileProblem('(files)', '')

/** Plain data, so that it can be transferred between threads. */
export interface PlaceTable {
  /** The files that this process reads; their problems name the affected routes. */
  readonly files: readonly NamedFile[]
  readonly secrets: readonly NamedSecret[]
  /** By their names. */
  readonly routes: ReadonlyMap<string, Problem>
  readonly servers: ReadonlyMap<string, Problem>
  /** The parts of a process. */
  readonly process: ReadonlyMap<string, Problem>
  /** The listeners whose addresses are set in a document. */
  readonly named: ReadonlySet<string>
}

/** The files a process reads beside its documents, and where each part of its configuration is written. */
export class ConfigPlaces {
  readonly table: PlaceTable

  constructor(table: PlaceTable) {
    this.table = table
  }

  get files(): readonly NamedFile[] {
    return this.table.files
  }

  get secrets(): readonly NamedSecret[] {
    return this.table.secrets
  }

  /** A problem with one part, located at the reference to the secret `wanted` (`NAME/KEY`) if it concerns one. */
  problem(part: ConfigPart, message: string, wanted?: string): Problem {
    const at = this.#placeOf(part)
    const secret = this.secrets.find(
      ({ label, at: place }) => label === wanted && (sharesRoute(place, at) || place.kind === at.kind),
    )
    return { ...(secret?.at ?? at), message }
  }

  /** Whether a document sets the address of this listener; `--listen` and `--admin` do not count. */
  names(listener: 'listen' | 'admin'): boolean {
    return this.table.named.has(listener)
  }

  #placeOf(part: ConfigPart): Problem {
    const { routes, servers, process } = this.table
    if ('route' in part) return routes.get(part.route) ?? NOWHERE
    if ('authServer' in part) return servers.get(part.authServer) ?? NOWHERE
    return process.get('process' in part ? part.process : part.listener) ?? NOWHERE
  }

  /** Locations are not part of a printed configuration. */
  toJSON(): undefined {
    return undefined
  }
}

const sharesRoute = ({ routes = [] }: Problem, { routes: others = [] }: Problem): boolean =>
  routes.some((name) => others.includes(name))

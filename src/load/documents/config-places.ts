import type { DraftRoute } from '../routes/draft-route.ts'
import type { Loaded } from './loaded.ts'
import type { NamedFile, NamedSecret } from './named-files.ts'
import { fileProblem, type Located, type Problem } from './problem.ts'
import type { ProxyConfig, ResolvedAuthServer, ResolvedRoute } from '../../resources/index.ts'

/** A part of a configuration that can turn out not to work when it is built. */
export type ConfigPart =
  | { readonly route: string }
  | { readonly authServer: string }
  /** `spec.cache` of the ProxyConfig. */
  | { readonly process: 'cache' | 'routes' }
  | { readonly listener: 'listen' | 'admin' }

const NOWHERE = fileProblem('(files)', '')

/** The parts of a process, and the fields that say them. */
const PROCESS_PARTS = [['listen', 'address'], ['admin', 'address'], ['cache'], ['routes']] as const

/** What a process reads beside its documents, and where the parts of its configuration are written. */
export class ConfigPlaces {
  /** The files that this process uses; their problems know the routes that do. */
  readonly files: readonly NamedFile[]
  readonly secrets: readonly NamedSecret[]
  readonly #routes: ReadonlyMap<string, Problem>
  readonly #servers: ReadonlyMap<string, Problem>
  readonly #process: ReadonlyMap<string, Problem>
  readonly #named: ReadonlySet<string>

  constructor(inputs: PlaceInputs) {
    const { loaded, proxy, drafts, routes, servers } = inputs
    const users = new Users(inputs)
    this.files = [...loaded.namedFiles, ...inputs.callersFiles].flatMap((file) => users.of(file) ?? [])
    this.secrets = [...loaded.namedSecrets, ...inputs.callersSecrets].flatMap((secret) => users.of(secret) ?? [])
    this.#routes = new Map(
      drafts.map((draft) => {
        const { name } = draft.settings
        return [name, withRoutes(draft.problem('externalAuthConfigRef', ''), [name])]
      }),
    )
    this.#servers = new Map(servers.map((server) => [server.name, placeOfServer(server, loaded, routes)]))
    // Made now, so that the documents need not be kept for it.
    this.#process = new Map(
      PROCESS_PARTS.map(([part, ...more]) => [part, proxy?.problem(['spec', part, ...more], '') ?? NOWHERE]),
    )
    const { listen, admin } = inputs.options
    const byOption = new Set([...(listen === undefined ? [] : ['listen']), ...(admin === undefined ? [] : ['admin'])])
    this.#named = new Set(proxy === undefined ? [] : ['listen', 'admin'].filter((listener) => !byOption.has(listener)))
  }

  /** A problem with one part; it is told at the reference to the secret `wanted` (`NAME/KEY`), if it is about one. */
  problem(part: ConfigPart, message: string, wanted?: string): Problem {
    const at = this.#placeOf(part)
    const secret = this.secrets.find(
      ({ label, at: place }) => label === wanted && (sharesRoute(place, at) || place.kind === at.kind),
    )
    return { ...(secret?.at ?? at), message }
  }

  /** Whether a document of this process says where it listens; `--listen` and `--admin` are none. */
  names(listener: 'listen' | 'admin'): boolean {
    return this.#named.has(listener)
  }

  #placeOf(part: ConfigPart): Problem {
    if ('route' in part) return this.#routes.get(part.route) ?? NOWHERE
    if ('authServer' in part) return this.#servers.get(part.authServer) ?? NOWHERE
    return this.#process.get('process' in part ? part.process : part.listener) ?? NOWHERE
  }

  /** Nothing that people look up in a configuration. */
  toJSON(): undefined {
    return undefined
  }
}

export interface PlaceInputs {
  readonly loaded: Loaded
  readonly proxy: Located<ProxyConfig> | undefined
  readonly drafts: readonly DraftRoute[]
  readonly routes: readonly ResolvedRoute[]
  readonly servers: readonly ResolvedAuthServer[]
  /** Of the file of `--callers`. */
  readonly callersFiles: readonly NamedFile[]
  readonly callersSecrets: readonly NamedSecret[]
  /** Addresses that are given by options. */
  readonly options: { readonly listen?: string | undefined; readonly admin?: string | undefined }
}

const sharesRoute = ({ routes = [] }: Problem, { routes: others = [] }: Problem): boolean =>
  routes.some((name) => others.includes(name))

const withRoutes = (problem: Problem, routes: readonly string[]): Problem =>
  routes.length === 0 ? problem : { ...problem, routes }

function placeOfServer(server: ResolvedAuthServer, { auths }: Loaded, routes: readonly ResolvedRoute[]): Problem {
  const users = routes.filter(({ authServer }) => authServer?.server === server).map(({ name }) => name)
  const located = auths.find(({ document: { metadata } }) => `${metadata.namespace}/${metadata.name}` === server.name)
  const { file, line } = server.source
  const at = located?.problem(['spec', 'embeddedAuthServer'], '') ?? fileProblem(file, '', { line, column: 1 })
  return withRoutes(at, users)
}

/** Who uses what a document names. */
class Users {
  readonly #inputs: PlaceInputs

  constructor(inputs: PlaceInputs) {
    this.#inputs = inputs
  }

  /** `named` with the routes that use it; undefined for what this process leaves alone. */
  of<T extends NamedFile | NamedSecret>(named: T): T | undefined {
    const routes = this.#routesOf(named)
    return routes === undefined ? undefined : { ...named, at: withRoutes(named.at, routes) }
  }

  #routesOf({ at, owner, steps, ...named }: NamedFile | NamedSecret): readonly string[] | undefined {
    const { proxy, routes, drafts } = this.#inputs
    const isSame = (source: { readonly file: string; readonly line: number }): boolean =>
      source.file === owner.file && source.line === owner.line
    const some = (names: readonly string[]) => (names.length === 0 ? undefined : [...new Set(names)])
    switch (at.kind) {
      case 'MCPExternalAuthConfig':
        return some(
          routes
            .filter(({ auth, authServer }) =>
              [auth, authServer?.server].some(
                (part) => part !== undefined && isSame(part.source) && part.name.split('/').at(-1) === at.name,
              ),
            )
            .map(({ name }) => name),
        )
      case 'ProxyConfig': {
        if (proxy === undefined || !isSame(proxy)) return undefined
        const [, part, index] = steps
        if (part === 'auth') return some(this.#callersWith(named))
        if (part !== 'routes') return []
        const name = proxy.document.spec.routes[Number(index)]?.name
        return some(routes.filter((route) => route.name === name).map((route) => route.name))
      }
      case 'AuthSection':
      case 'MCPOIDCConfig':
        return some(this.#callersWith(named))
      default: {
        const own = drafts.filter((draft) => isSame(draft.source) && draft.problem('name', '').name === at.name)
        const isCaller = steps[1] === 'auth' || steps[1] === 'oidcConfig'
        const names = own.filter((draft) => !isCaller || draft.ownCallers !== undefined)
        return some(names.map(({ settings }) => settings.name))
      }
    }
  }

  /** Routes whose callers come from a section with this file. */
  #callersWith(named: object): readonly string[] {
    const isNamed = (file: string | undefined): boolean =>
      file !== undefined &&
      ('path' in named ? named.path === file : 'label' in named && file.endsWith(`/${String(named.label)}`))
    return this.#inputs.routes
      .filter(
        ({ callers }) =>
          callers.mode === 'oauth' &&
          callers.oauth.providers.some(({ caCertPath, clientSecretFile, authTokenFile }) =>
            [caCertPath, clientSecretFile, authTokenFile].some(isNamed),
          ),
      )
      .map(({ name }) => name)
  }
}

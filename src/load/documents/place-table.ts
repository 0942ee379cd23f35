import { authsOf, type ProxyConfig, type ResolvedAuthServer, type ResolvedRoute } from '../../resources/index.ts'
import type { DraftRoute } from '../routes/draft-route.ts'
import { NOWHERE, type PlaceTable } from './config-places.ts'
import type { Loaded } from './loaded.ts'
import type { NamedFile, NamedSecret } from './named-files.ts'
import { fileProblem, type Located, type Problem } from './problem.ts'

/** The parts of a process, and the fields that configure them. */
const PROCESS_PARTS = [['listen', 'address'], ['admin', 'address'], ['cache'], ['routes'], ['audit']] as const

export interface PlaceInputs {
  readonly loaded: Loaded
  readonly proxy: Located<ProxyConfig> | undefined
  /** The document with the `connections` section. */
  readonly connections: Located<unknown> | undefined
  readonly drafts: readonly DraftRoute[]
  readonly routes: readonly ResolvedRoute[]
  readonly servers: readonly ResolvedAuthServer[]
  /** Of the file of `--callers`. */
  readonly callersFiles: readonly NamedFile[]
  readonly callersSecrets: readonly NamedSecret[]
  /** Addresses set by options. */
  readonly options: { readonly listen?: string | undefined; readonly admin?: string | undefined }
}

/** Collects all locations at once, so that the documents can be garbage-collected. */
export function placeTable(inputs: PlaceInputs): PlaceTable {
  const { loaded, proxy, drafts, routes, servers } = inputs
  const users = new Users(inputs)
  const { listen, admin } = inputs.options
  const byOption = new Set([...(listen === undefined ? [] : ['listen']), ...(admin === undefined ? [] : ['admin'])])
  return {
    files: [...loaded.namedFiles, ...inputs.callersFiles].flatMap((file) => users.of(file) ?? []),
    secrets: [...loaded.namedSecrets, ...inputs.callersSecrets].flatMap((secret) => users.of(secret) ?? []),
    routes: new Map(
      drafts.map((draft) => {
        const { name } = draft.settings
        return [name, withRoutes(draft.problem('externalAuthConfigRef', ''), [name])]
      }),
    ),
    servers: new Map(servers.map((server) => [server.name, placeOfServer(server, loaded, routes)])),
    process: new Map([
      ...PROCESS_PARTS.map(
        ([part, ...more]) => [part, proxy?.problem(['spec', part, ...more], '') ?? NOWHERE] as const,
      ),
      ['connections', inputs.connections?.problem(['spec', 'connections'], '') ?? NOWHERE],
    ]),
    named: new Set(proxy === undefined ? [] : ['listen', 'admin'].filter((listener) => !byOption.has(listener))),
  }
}

const withRoutes = (problem: Problem, routes: readonly string[]): Problem =>
  routes.length === 0 ? problem : { ...problem, routes }

function placeOfServer(server: ResolvedAuthServer, { auths }: Loaded, routes: readonly ResolvedRoute[]): Problem {
  const users = routes.filter(({ authServer }) => authServer?.server === server).map(({ name }) => name)
  const located = auths.find(({ document: { metadata } }) => `${metadata.namespace}/${metadata.name}` === server.name)
  const { file, line } = server.source
  const at = located?.problem(['spec', 'embeddedAuthServer'], '') ?? fileProblem(file, '', { line, column: 1 })
  return withRoutes(at, users)
}

/** Route names by a shared property. */
type Groups = ReadonlyMap<string, readonly string[]>

interface Source {
  readonly file: string
  readonly line: number
}

const placeKey = ({ file, line }: Source, name: string): string => JSON.stringify([file, line, name])

/** `values` by each of the keys that `keysOf` finds in them. */
function grouped<T>(values: readonly T[], keysOf: (value: T) => readonly string[], nameOf: (value: T) => string) {
  const groups = new Map<string, string[]>()
  for (const value of values)
    for (const key of new Set(keysOf(value))) {
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [nameOf(value)])
      else group.push(nameOf(value))
    }
  return groups
}

/** Indexes which routes use a reference: there may be thousands of routes and as many references. */
class Users {
  readonly #inputs: PlaceInputs
  readonly #byAuth: Groups
  readonly #names: ReadonlySet<string>
  readonly #byManifest: Groups
  readonly #callersByManifest: Groups
  /** By the files of their callers, and by the last path segments of these. */
  readonly #byFile: Groups
  /** By the name of the MCPTelemetryConfig that receives their traces. */
  readonly #byTelemetry: Groups

  constructor(inputs: PlaceInputs) {
    const { routes, drafts } = inputs
    const nameOf = ({ name }: { readonly name: string }): string => name
    this.#inputs = inputs
    this.#names = new Set(routes.map(nameOf))
    this.#byAuth = grouped(routes, configsOf, nameOf)
    const ofManifest = (draft: DraftRoute): string[] => [placeKey(draft.source, draft.problem('name', '').name)]
    const nameOfDraft = ({ settings }: DraftRoute): string => settings.name
    const manifests = drafts.filter(({ origin }) => origin === 'manifest')
    const withCallers = manifests.filter(({ ownCallers }) => ownCallers !== undefined)
    this.#byManifest = grouped(manifests, ofManifest, nameOfDraft)
    this.#callersByManifest = grouped(withCallers, ofManifest, nameOfDraft)
    this.#byFile = grouped(routes, filesOfCallers, nameOf)
    this.#byTelemetry = grouped(routes, telemetryOf, nameOf)
  }

  /** Adds the using routes to `named`; undefined if this process does not use it. */
  of<T extends NamedFile | NamedSecret>(named: T): T | undefined {
    const routes = this.#routesOf(named)
    return routes === undefined ? undefined : { ...named, at: withRoutes(named.at, routes) }
  }

  #routesOf(named: NamedFile | NamedSecret): readonly string[] | undefined {
    const { at, owner, steps } = named
    const { proxy } = this.#inputs
    switch (at.kind) {
      case 'MCPExternalAuthConfig':
        return this.#byAuth.get(placeKey(owner, at.name))
      case 'ProxyConfig': {
        if (proxy === undefined || proxy.file !== owner.file || proxy.line !== owner.line) return undefined
        const [, part, index] = steps
        if (part === 'auth') return this.#callersWith(named)
        if (part !== 'routes') return []
        const name = proxy.document.spec.routes[Number(index)]?.name
        return name !== undefined && this.#names.has(name) ? [name] : undefined
      }
      case 'MCPTelemetryConfig':
        return this.#byTelemetry.get(at.name)
      case 'AuthSection':
      case 'MCPOIDCConfig':
        return this.#callersWith(named)
      default: {
        const isCaller = steps[1] === 'auth' || steps[1] === 'oidcConfig'
        return (isCaller ? this.#callersByManifest : this.#byManifest).get(placeKey(owner, at.name))
      }
    }
  }

  /** Routes whose `auth` section references this file. */
  #callersWith(named: NamedFile | NamedSecret): readonly string[] | undefined {
    return this.#byFile.get('path' in named ? named.path : named.label)
  }
}

/** Locations of the configs of a route, those of `credentials` included, and of its authorization server. */
const configsOf = (route: ResolvedRoute): string[] =>
  [...authsOf(route), route.authServer?.server].flatMap((part) =>
    part === undefined ? [] : [placeKey(part.source, part.name.split('/').at(-1) ?? '')],
  )

const telemetryOf = ({ telemetry }: ResolvedRoute): string[] =>
  telemetry === undefined ? [] : [telemetry.name.split('/').at(-1) ?? '']

/** The files of a route's callers; those of secrets also as `NAME/KEY`, independent of the secrets directory. */
function filesOfCallers({ callers }: ResolvedRoute): string[] {
  if (callers.mode === 'anonymous') return []
  return callers.oauth.providers.flatMap(({ caCertPath, clientSecretFile, authTokenFile }) =>
    [caCertPath, clientSecretFile, authTokenFile].flatMap((file) =>
      file === undefined ? [] : [file, file.split('/').slice(-2).join('/')],
    ),
  )
}

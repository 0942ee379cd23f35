import type { ClientRequest, EndpointResponse } from '../core/index.ts'
import type { Readiness } from '../ops/index.ts'
import { type AccessPolicy, challengeOf } from './access.ts'
import { type ApiOptions, createApi } from './api.ts'
import { admit } from './gate.ts'
import type { RegistryData } from './registry-data.ts'

/** The content that a reload may change, and its access policy. */
export interface RegistryContent {
  readonly registries: ReadonlyMap<string, Pick<RegistryData, 'state'>>
  readonly access: AccessPolicy
  /** Discovery documents by path, for a server at this URL. */
  readonly documentsFor: (url: string) => ReadonlyMap<string, object>
}

export type SiteOptions = RegistryContent & Omit<ApiOptions, 'documents' | 'registries' | 'access'>

/** Serves the content of a registry server. */
export interface Site {
  /** The response to a request. */
  serve(request: ClientRequest): EndpointResponse | Promise<EndpointResponse>
  /** The URL that documents name from now on. */
  listeningAt(url: string): void
  /** Serves new content to new requests; those in flight keep the old one. */
  replace(content: RegistryContent): void
  readiness(isDraining: boolean): Readiness
}

/** Creates a site. Each content has its own API, so that a request never sees two. */
export function createSite(options: SiteOptions): Site {
  let url = ''
  const make = (content: RegistryContent) => {
    let texts: ReadonlyMap<string, string> | undefined
    const documents = () =>
      (texts ??= new Map([...content.documentsFor(url)].map(([path, document]) => [path, JSON.stringify(document)])))
    const { registries, access } = content
    const api = createApi({ ...options, registries, access, documents })
    return { api, registries, challenge: (failure: Parameters<typeof challengeOf>[1]) => challengeOf(access, failure) }
  }
  let current = make(options)
  return {
    serve(request) {
      const { api, challenge } = current
      const admitted = admit(request, challenge)
      return typeof admitted === 'string' ? api(request, admitted) : admitted
    },
    listeningAt: (at) => void (url = at),
    replace: (content) => void (current = make(content)),
    readiness: (isDraining) => readinessOf(current.registries, isDraining),
  }
}

function readinessOf(registries: RegistryContent['registries'], isDraining: boolean): Readiness {
  const states = [...registries].map(([name, registry]) => [name, registry.state()] as const)
  const details = states.map(([name, { snapshot, problem }]) => {
    const skipped = snapshot?.skipped.count ?? 0
    return [
      name,
      {
        entries: snapshot?.entries.length ?? 0,
        ...(skipped === 0 ? {} : { skipped }),
        ...(problem === undefined ? {} : { problem }),
      },
    ]
  })
  const detail: Record<string, unknown> = Object.fromEntries(details)
  if (isDraining) return { ok: false, detail: { draining: true, registries: detail } }
  return {
    ok: states.every(([, { snapshot }]) => snapshot !== undefined),
    degraded: states.some(([, { snapshot, problem }]) => problem !== undefined || (snapshot?.skipped.count ?? 0) > 0),
    detail: { registries: detail },
  }
}

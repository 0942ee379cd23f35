import {
  type ManifestSection,
  type Provider,
  remarksOn,
  urlsCalledBy,
  type TypedSpec,
  type CalledUrl,
} from '../../resources/index.ts'
import { isRecord, judgePlainHttp, type PlainHttp } from '../../fields/index.ts'
import type { Located, Problem } from './problem.ts'

type Path = readonly PropertyKey[]

const PROVIDER_URLS = ['issuerUrl', 'jwksUrl', 'introspectionUrl'] as const

/** Allowed but questionable settings of a type; `base` is the path of its sub-object. */
export function typeWarnings(place: Located<unknown>, typed: TypedSpec, base: Path): Problem[] {
  return [
    ...remarksOn(typed).map(({ path, message }) => place.problem([...base, ...path], message)),
    ...urlsCalledBy(typed).flatMap((called) => plainHttpWarning(place, called, [...base, ...called.path])),
  ]
}

/** Allowed but questionable settings of an `auth` section. */
export function sectionWarnings(section: ManifestSection, place: Located<unknown>, path: Path): Problem[] {
  if (section.mode === 'anonymous') return []
  const base = [...path, 'oauth', 'providers']
  const names = section.oauth.providers.map((provider) => provider.name)
  return section.oauth.providers.flatMap((provider, index) => {
    const { refused, warnings } = providerHttp(place, provider, (name) => [...base, index, name])
    const repeated =
      names.indexOf(provider.name) < index
        ? [
            place.problem(
              [...base, index, 'name'],
              'an earlier provider has this name, so logs cannot distinguish them',
            ),
          ]
        : []
    return [...repeated, ...refused, ...warnings]
  })
}

/** Provider URLs rejected because they are plain http (decisions §2.6): the document loads but does not run. */
export function refusedHttp(section: ManifestSection, place: Located<unknown>, path: Path): Problem[] {
  if (section.mode === 'anonymous') return []
  const base = [...path, 'oauth', 'providers']
  return section.oauth.providers.flatMap(
    (provider, index) => providerHttp(place, provider, (name) => [...base, index, name]).refused,
  )
}

/** Plain-http provider URLs: rejected ones, and ones used with a warning (decisions §2.6). */
export function providerHttp(
  place: Located<unknown>,
  provider: Provider,
  pathOf: (name: (typeof PROVIDER_URLS)[number]) => Path,
): { readonly refused: Problem[]; readonly warnings: Problem[] } {
  const found: { refused: Problem[]; warnings: Problem[] } = { refused: [], warnings: [] }
  const { insecureAllowHttp } = provider
  for (const name of PROVIDER_URLS) {
    const url = provider[name]
    if (url === undefined) continue
    const list = checkCalledUrl({ url, insecureAllowHttp }) === 'refuse' ? found.refused : found.warnings
    list.push(...plainHttpWarning(place, { url, insecureAllowHttp }, pathOf(name)))
  }
  return found
}

/** Fields with a URL that the proxy calls, at any path. */
const CALLED_URLS = [...PROVIDER_URLS, 'tokenUrl'] as const
const DEEPEST = 12

/**
 * Rejected plain-http URLs in a document with schema problems: otherwise only the next run would report them. `path`
 * is the path of `value`.
 */
export function plainHttpIn(place: Located<unknown>, value: unknown, path: Path = []): Problem[] {
  if (path.length > DEEPEST) return []
  if (Array.isArray(value)) return value.flatMap((item, index) => plainHttpIn(place, item, [...path, index]))
  if (!isRecord(value)) return []
  const insecureAllowHttp = value['insecureAllowHttp'] === true || value['insecureAllowHTTP'] === true
  return Object.entries(value).flatMap(([name, member]) => {
    if (typeof member !== 'string') return plainHttpIn(place, member, [...path, name])
    if (!CALLED_URLS.some((one) => one.toLowerCase() === name.toLowerCase()) || !URL.canParse(member)) return []
    const called = { url: member, insecureAllowHttp }
    return checkCalledUrl(called) === 'refuse' ? [place.problem([...path, name], refusedHttpMessage(called))] : []
  })
}

function plainHttpWarning(place: Located<unknown>, called: CalledHttpUrl, path: Path): Problem[] {
  switch (checkCalledUrl(called)) {
    case 'warn':
      return [place.problem(path, 'plain http: anyone on the network path can read and change requests')]
    case 'refuse':
      return [place.problem(path, refusedHttpMessage(called))]
    default:
      return []
  }
}

type CalledHttpUrl = Pick<CalledUrl, 'url' | 'insecureAllowHttp' | 'allowedBy'>

/** Whether plain http is allowed for a called URL (decisions §2.6). */
export const checkCalledUrl = ({ url, insecureAllowHttp = false }: CalledHttpUrl): PlainHttp =>
  judgePlainHttp(url, insecureAllowHttp)

/** Why a plain-http URL is rejected, and how to allow it (decisions §2.6). */
export function refusedHttpMessage({
  insecureAllowHttp,
  allowedBy = 'insecureAllowHttp',
}: Pick<CalledUrl, 'insecureAllowHttp' | 'allowedBy'>): string {
  const expected = insecureAllowHttp === undefined ? 'https' : `https or "${allowedBy}: true"`
  return `plain http is only used for loopback and in-cluster names, expected ${expected}`
}

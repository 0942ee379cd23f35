import type { AuthSection } from './auth-section.ts'
import type { CloudSts } from './cloud-sts.ts'
import type { MCPExternalAuthConfig } from './external-auth.ts'
import { judgePlainHttp } from './plain-http.ts'
import type { Located, Problem } from './problem.ts'

type Path = readonly PropertyKey[]

const PROVIDER_URLS = ['issuerUrl', 'jwksUrl', 'introspectionUrl'] as const

/** What is allowed in an MCPExternalAuthConfig but should be known; `field` is what its sub-object is called in the file. */
export function authWarnings(auth: Located<MCPExternalAuthConfig>, field: string): Problem[] {
  const { spec } = auth.document
  switch (spec.type) {
    case 'cloudSts':
      return cloudWarnings(auth, spec.cloudSts, ['spec', field])
    case 'tokenExchange':
      return plainHttpWarning(auth, spec.tokenExchange.tokenUrl, spec.tokenExchange.insecureAllowHttp, [
        'spec',
        'tokenExchange',
        'tokenUrl',
      ])
    case 'embeddedAuthServer': {
      const { hmacSecretRefs, signingKeySecretRefs } = spec.embeddedAuthServer
      const isEphemeral = (refs: readonly unknown[] | undefined) => refs === undefined || refs.length === 0
      return [
        ...(isEphemeral(hmacSecretRefs) ? ['hmacSecretRefs' as const] : []),
        ...(isEphemeral(signingKeySecretRefs) ? ['signingKeySecretRefs' as const] : []),
      ].map((name) =>
        auth.problem(
          ['spec', 'embeddedAuthServer', name],
          'not set: a key is made at start and lost at the next one, for development only',
        ),
      )
    }
    default:
      return []
  }
}

function cloudWarnings(auth: Located<MCPExternalAuthConfig>, sts: CloudSts, base: Path): Problem[] {
  const arns: (readonly [Path, string])[] = (sts.roleMappings ?? []).map(
    (mapping, index) => [[...base, 'roleMappings', index, 'roleArn'], mapping.roleArn] as const,
  )
  if (sts.fallbackRoleArn !== undefined) arns.push([[...base, 'fallbackRoleArn'], sts.fallbackRoleArn])
  const expected = partitionOf(sts.region)
  const found = arns
    .filter(([, arn]) => arn.split(':')[1]?.replace(/^cloud/, 'aws') !== expected)
    .map(([path]) =>
      auth.problem(path, `a role of another partition than the region "${sts.region}", which is in "${expected}"`),
    )
  if (sts.stsEndpoint !== undefined) {
    found.push(...plainHttpWarning(auth, sts.stsEndpoint, false, [...base, 'stsEndpoint']))
  }
  return found
}

/** Partition that a region belongs to, by its name. */
function partitionOf(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn'
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws'
}

/** What is allowed in an `auth` section but should be known. */
export function sectionWarnings(section: AuthSection, place: Located<unknown>, path: Path): Problem[] {
  if (section.mode === 'anonymous') return []
  const base = [...path, 'oauth', 'providers']
  const names = section.oauth.providers.map((provider) => provider.name)
  return section.oauth.providers.flatMap((provider, index) => [
    ...(names.indexOf(provider.name) < index
      ? [place.problem([...base, index, 'name'], 'an earlier provider has this name, so logs can not tell them apart')]
      : []),
    ...PROVIDER_URLS.flatMap((name) => {
      const url = provider[name]
      return url === undefined ? [] : plainHttpWarning(place, url, provider.insecureAllowHttp, [...base, index, name])
    }),
  ])
}

/** Provider URLs that are not used, because they are plain http (decisions §2.6): what loads, but does not run. */
export function refusedHttp(section: AuthSection, place: Located<unknown>, path: Path): Problem[] {
  if (section.mode === 'anonymous') return []
  return section.oauth.providers.flatMap((provider, index) =>
    PROVIDER_URLS.flatMap((name) => {
      const url = provider[name]
      if (url === undefined || judgePlainHttp(url, provider.insecureAllowHttp) !== 'refuse') return []
      return [place.problem([...path, 'oauth', 'providers', index, name], REFUSED_HTTP)]
    }),
  )
}

function plainHttpWarning(place: Located<unknown>, url: string, insecureAllowHttp: boolean, path: Path): Problem[] {
  switch (judgePlainHttp(url, insecureAllowHttp)) {
    case 'warn':
      return [place.problem(path, 'plain http: whoever is on the network path can read and change what is sent')]
    case 'refuse':
      return [place.problem(path, REFUSED_HTTP)]
    default:
      return []
  }
}

/** Why a URL with `http` is not used (decisions §2.6). */
export const REFUSED_HTTP =
  'plain http is only used for loopback and in-cluster names, expected https or "insecureAllowHttp: true"'

import type { AuthenticatedCaller, UpstreamTokens } from '../../../src/core/index.ts'
import type { UpstreamUse } from '../../../src/resources/index.ts'
import { once } from '../../../src/fields/index.ts'
import { xaa } from '../../../src/resources/on-behalf/xaa.ts'
import { createCaller, createManualClock, type ManualClock, START_MS } from '../ports.ts'
import type { createSockets } from '../sockets.ts'
import { type Answer, createRig, json, type Received, type RigOptions, startEndpoint } from './harness.ts'
import { asserted, granted, jag, jwt, RESOURCE, TARGET } from './xaa-tokens.ts'

export const SECRETS = { 'idp/secret': 'idp-s3cret', 'target/secret': 'target-s3cret' }

/** A caller who came with an ID token that is for us. */
export const idCaller = (more: Parameters<typeof createCaller>[0] = {}): AuthenticatedCaller => {
  const { claims, subject = 'alice', issuer = 'https://idp.example' } = more
  // An ID token has no permissions, which the callers of other tests have.
  const own = { scp: null, aud: 'us', sub: subject, iss: issuer, iat: START_MS / 1_000, ...claims }
  return createCaller({ token: jwt(own), ...more, subject, issuer, claims: own })
}

export const parameter = ({ form }: Received, name: string): string | undefined => new Map(form).get(name)

/** Default responses: the assertion names its owner, and the token names the assertion. */
const answerIdp: Answer = (request, response) => {
  const [, payload = ''] = (parameter(request, 'subject_token') ?? '').split('.')
  const { sub, iss } = JSON.parse(Buffer.from(payload, 'base64url').toString() || '{}') as Record<string, unknown>
  json(asserted(jag({ sub, act: iss })))(request, response)
}
const answerTarget: Answer = (request, response) => {
  const [, payload = ''] = (parameter(request, 'assertion') ?? '').split('.')
  const { sub, act } = JSON.parse(Buffer.from(payload, 'base64url').toString() || '{}') as Record<string, string>
  json(granted(`token-of-${sub}-at-${act}`))(request, response)
}

// Making a schema takes longer than using it.
const schema = once(xaa)

/** Both token endpoints, and the type in front of them. */
export async function openXaa(
  sockets: ReturnType<typeof createSockets>,
  options: RigOptions & {
    readonly spec?: Readonly<Record<string, unknown>>
    readonly upstream?: UpstreamUse
    readonly upstreamTokens?: UpstreamTokens
    readonly clock?: ManualClock
  } = {},
) {
  const [idp, target] = [await startEndpoint(sockets, answerIdp), await startEndpoint(sockets, answerTarget)]
  const clock = options.clock ?? createManualClock()
  const rig = createRig(sockets, { secrets: SECRETS, outbound: { random: () => 0 }, ...options, clock })
  const openWith = (more: Readonly<Record<string, unknown>> = {}, name = 'github') => {
    const parsed = schema().parse({
      idpTokenUrl: 'https://idp.example/token',
      idpClientId: 'us',
      idpClientSecretRef: { name: 'idp', key: 'secret' },
      targetTokenUrl: target.url,
      targetClientId: 'us-there',
      targetClientSecretRef: { name: 'target', key: 'secret' },
      targetAudience: TARGET,
      targetResource: RESOURCE,
      ...options.spec,
      ...more,
    })
    return rig.open({
      name,
      namespace: 'default',
      configHash: JSON.stringify(more),
      source: { file: 'test.yaml', line: 1 },
      type: 'xaa',
      // Plain http, which the schema refuses.
      spec: { ...parsed, idpTokenUrl: idp.url },
      upstream: options.upstream,
    })
  }
  return { idp, target, clock, rig, openWith, ...openWith() }
}

import { createRequire } from 'node:module'
import type * as Providers from '@aws-sdk/credential-providers'
import type { parseKnownFiles } from '@smithy/core/config'
import { causeOf, Failure, type Outbound, Secret } from '../../../core/index.ts'
import { type AmbientName, type AmbientSpec, chainOf } from '../../../resources/index.ts'
import { VISIBLE_ASCII } from '../sts-client.ts'
import type { AwsKeys } from './keys.ts'
import { containerKeys, instanceEndpoint, instanceKeys, type MetadataKeys, whyNothing } from './metadata.ts'
import type { RoleAssumers } from './role-assumers.ts'

// Loaded with the first config that needs it.
const load = createRequire(import.meta.url)

/** All of a fetch. */
const DEADLINE_MS = 5_000

type Env = Readonly<Record<string, string | undefined>>
type Found = Pick<Awaited<ReturnType<ReturnType<typeof Providers.fromEnv>>>, keyof MetadataKeys>

export interface AmbientDeps {
  /** What the SDK's providers read as `process.env`. */
  readonly env: Env
  /** STS for the places that are only a token or a role of a profile. */
  readonly assumers: RoleAssumers
  /** To metadata services. */
  readonly metadata: Outbound
}

interface Place {
  /** Whether the environment points there; undefined where only asking tells. */
  readonly isSet: (env: Env) => boolean | undefined
  readonly ask: (context: AmbientDeps & AmbientSpec) => Promise<Found>
}

/** The SDK says things on the console otherwise. */
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const providers = () => load('@aws-sdk/credential-providers') as typeof Providers

const PLACES: Readonly<Record<AmbientName, Place>> = {
  environment: {
    isSet: (env) => Boolean(env['AWS_ACCESS_KEY_ID']) && Boolean(env['AWS_SECRET_ACCESS_KEY']),
    ask: () => providers().fromEnv()(),
  },
  webIdentityFile: {
    isSet: (env) => Boolean(env['AWS_WEB_IDENTITY_TOKEN_FILE']) && Boolean(env['AWS_ROLE_ARN']),
    ask: ({ assumers }) =>
      providers().fromTokenFile({ roleAssumerWithWebIdentity: assumers.withWebIdentity, logger: quiet })(),
  },
  podIdentity: {
    isSet: (env) =>
      Boolean(env['AWS_CONTAINER_CREDENTIALS_FULL_URI']) &&
      Boolean(env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']) &&
      !env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'],
    ask: ({ env, metadata }) => containerKeys(env, metadata),
  },
  container: {
    isSet: (env) =>
      Boolean(env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']) || Boolean(env['AWS_CONTAINER_CREDENTIALS_FULL_URI']),
    ask: ({ env, metadata }) => containerKeys(env, metadata),
  },
  instance: {
    isSet: (env) => (isTrue(env['AWS_EC2_METADATA_DISABLED']) ? false : undefined),
    ask: async ({ env, metadata }) => instanceKeys(instanceEndpoint(env, await profileNamed(env)), metadata),
  },
  profile: {
    isSet: () => undefined,
    async ask({ env, profile, assumers }) {
      const name = profile ?? (env['AWS_PROFILE'] || 'default')
      await refuseUnusable(name)
      return providers().fromIni({
        profile: name,
        ignoreCache: true,
        roleAssumer: assumers.withKeys,
        roleAssumerWithWebIdentity: assumers.withWebIdentity,
        logger: quiet,
      })()
    },
  },
}

const isTrue = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== 'false'

/** Where the identity was found, as well. */
export interface Ambient {
  fetch(): Promise<AwsKeys>
  /** The place that answered first; the others are not asked after. */
  readonly answered: AmbientName | undefined
}

/**
 * The identity that the process finds around it, from the SDK's providers and from metadata services: the places of the
 * chain in their order, and no others. A place that the environment points to and that fails ends the search, as in the
 * SDKs: what comes behind it is somebody else. Once a place has answered it is the only one. `fetch` throws
 * `aws_identity_unavailable`, and what STS says.
 */
export function createAmbient(spec: AmbientSpec, deps: AmbientDeps): Ambient {
  let answered: AmbientName | undefined
  const context = { ...spec, ...deps }

  async function search(): Promise<AwsKeys> {
    const reasons: string[] = []
    const places = answered === undefined ? chainOf(spec) : [answered]
    for (const name of places) {
      const { isSet, ask } = PLACES[name]
      const set = isSet(deps.env)
      if (set === false) continue
      try {
        const keys = keysFound(await ask(context), name)
        answered = name
        return keys
      } catch (error) {
        if (set === true || name === answered || !isElsewhere(error)) throw failureOf(error, name)
        const why = whyNothing(error)
        if (why !== undefined) reasons.push(`; ${name}: ${why}`)
      }
    }
    throw unavailable(`none of ${places.join(', ')} has credentials${reasons.join('')}`)
  }

  return {
    fetch: () => withDeadline(search()),
    get answered() {
      return answered
    },
  }
}

const unavailable = (detail: string, cause?: unknown): Failure =>
  new Failure('aws_identity_unavailable', { detail, ...(cause === undefined ? {} : { cause }) })

/** After these the next place is asked; the SDK has a mark for them. */
const isElsewhere = (error: unknown): boolean =>
  whyNothing(error) !== undefined ||
  (typeof error === 'object' && error !== null && 'tryNextLink' in error && error.tryNextLink === true)

function failureOf(error: unknown, name: AmbientName): Failure {
  if (error instanceof Failure) return error
  return unavailable(`${name}: ${whyNothing(error) ?? JSON.stringify(causeOf(error))}`, error)
}

function keysFound(found: Found, name: AmbientName): AwsKeys {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = found
  const expiresAtMs = expiration === undefined ? Infinity : expiration.getTime()
  const areUsable = [accessKeyId, secretAccessKey, sessionToken || 'none'].every((text) => VISIBLE_ASCII.test(text))
  if (!areUsable || Number.isNaN(expiresAtMs)) throw unavailable(`${name} gave no usable credentials`)
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: sessionToken ? new Secret(sessionToken) : undefined,
    expiresAtMs,
  }
}

type Profile = Readonly<Record<string, string | undefined>>

/** What the AWS configuration files have, read anew. */
function knownProfiles(): Promise<Readonly<Record<string, Profile | undefined>>> {
  const config = load('@smithy/core/config') as { parseKnownFiles: typeof parseKnownFiles }
  return config.parseKnownFiles({ ignoreCache: true })
}
const profileNamed = async (env: Env): Promise<Profile> =>
  (await knownProfiles())[env['AWS_PROFILE'] || 'default'] ?? {}

/** Whom the SDK would ask by itself, without a bound for the answer. */
const METADATA_SOURCES: ReadonlySet<string | undefined> = new Set(['Ec2InstanceMetadata', 'EcsContainer'])

/**
 * Profiles of somebody who logs in with a browser are no identity of a server, and keys of a metadata service are got by a
 * place of their own.
 */
async function refuseUnusable(profile: string): Promise<void> {
  const profiles = await knownProfiles()
  const seen = new Set<string>()
  for (let name: string | undefined = profile; name !== undefined && !seen.has(name);) {
    seen.add(name)
    const fields: Profile = profiles[name] ?? {}
    if (Object.keys(fields).some((field) => field.startsWith('sso_') || field === 'login_session'))
      throw unavailable(`the profile ${JSON.stringify(name)} needs a login in the browser (SSO), which no server has`)
    if (METADATA_SOURCES.has(fields['credential_source']))
      throw unavailable(
        `the profile ${JSON.stringify(name)} takes keys of a metadata service; expected "instance" or "container" in chain, and its role in a source of type role`,
      )
    name = fields['source_profile']
  }
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(unavailable(`no answer within ${DEADLINE_MS / 1000} s`)), DEADLINE_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

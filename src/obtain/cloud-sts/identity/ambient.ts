import { causeOf, Failure, OutboundError, type Outbound, Secret } from '../../../core/index.ts'
import { type AmbientName, type AmbientSpec, chainOf } from '../../../resources/index.ts'
import { VISIBLE_ASCII } from '../sts-client.ts'
import { environmentKeys, type Env, webIdentityKeys } from './environment.ts'
import { type AwsKeys, CredentialSourceError, type FoundKeys } from './keys.ts'
import { containerKeys, instanceEndpoint, instanceKeys, whyNothing } from './metadata.ts'
import { profileKeys, settingsOf } from './profile.ts'
import type { RoleAssumers } from './role-assumers.ts'

/** Deadline of a fetch. */
const DEADLINE_MS = 5_000
/** Grace time for an aborted fetch to report its error. */
const ENDING_MS = 100

export interface AmbientDeps {
  readonly env: Env
  /** STS, for sources that are only a token or a role of a profile. */
  readonly assumers: RoleAssumers
  /** To metadata services. */
  readonly metadata: Outbound
  /** To IAM Identity Center, for profiles with SSO. */
  readonly sso: Outbound
}

interface Place {
  /** Whether configuration or environment selects it; undefined when only a request shows whether it exists. */
  readonly isNamed: (env: Env, spec: AmbientSpec) => boolean | undefined
  readonly ask: (
    context: AmbientDeps & AmbientSpec & { readonly signal: AbortSignal },
  ) => FoundKeys | Promise<FoundKeys>
}

/** Without a configured chain, the profile in `AWS_PROFILE` is searched after the environment's keys. */
function searchedFor(spec: AmbientSpec, env: Env): readonly AmbientName[] {
  const chain = chainOf(spec)
  return spec.chain === undefined && env['AWS_PROFILE']
    ? chain.flatMap((name): AmbientName[] => (name === 'environment' ? [name, 'profile'] : [name]))
    : chain
}

const anyOf = (env: Env, ...names: string[]): boolean => names.some((name) => Boolean(env[name]))

const PLACES: Readonly<Record<AmbientName, Place>> = {
  environment: {
    isNamed: (env) => anyOf(env, 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'),
    ask: ({ env }) => environmentKeys(env),
  },
  webIdentityFile: {
    isNamed: (env) => anyOf(env, 'AWS_WEB_IDENTITY_TOKEN_FILE'),
    ask({ env, assumers }) {
      const variable = 'AWS_WEB_IDENTITY_TOKEN_FILE'
      const { [variable]: file = '', AWS_ROLE_ARN: roleArn, AWS_ROLE_SESSION_NAME: session } = env
      if (!roleArn) throw new CredentialSourceError(`${variable} is set; expected AWS_ROLE_ARN as well`)
      return webIdentityKeys({ file, variable, roleArn, session }, assumers)
    },
  },
  podIdentity: {
    isNamed: (env) =>
      anyOf(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE') && !env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'],
    ask: ({ env, metadata }) => containerKeys(env, metadata),
  },
  container: {
    isNamed: (env) =>
      anyOf(
        env,
        'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
        'AWS_CONTAINER_CREDENTIALS_FULL_URI',
        'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
        'AWS_CONTAINER_AUTHORIZATION_TOKEN',
      ),
    ask: ({ env, metadata }) => containerKeys(env, metadata),
  },
  instance: {
    isNamed: (env) => (isTrue(env['AWS_EC2_METADATA_DISABLED']) ? false : undefined),
    ask: async ({ env, metadata }) => instanceKeys(instanceEndpoint(env, await settingsOf(env)), metadata),
  },
  profile: {
    isNamed: (env, { profile }) => profile !== undefined || anyOf(env, 'AWS_PROFILE') || undefined,
    ask: (context) => profileKeys(context.profile, context),
  },
}

const isTrue = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== 'false'

/** The keys and their source. */
export interface Ambient {
  fetch(): Promise<AwsKeys>
  /** The source that answered; later ones are not tried. */
  readonly answered: AmbientName | undefined
}

/**
 * The AWS identity of the process: only the sources of the chain, in order. A failing source that the configuration or a
 * variable names ends the search: the next one may be a different identity. After its first success a source is the only
 * one. `fetch` throws `aws_identity_unavailable` and the failures of STS.
 */
export function createAmbient(spec: AmbientSpec, deps: AmbientDeps): Ambient {
  let answered: AmbientName | undefined
  const context = { ...spec, ...deps }
  const searched = searchedFor(spec, deps.env)

  async function search(signal: AbortSignal): Promise<AwsKeys> {
    const reasons: string[] = []
    const places = answered === undefined ? searched : [answered]
    for (const name of places) {
      const { isNamed, ask } = PLACES[name]
      const named = isNamed(deps.env, spec)
      if (named === false) continue
      try {
        const keys = keysFound(await ask({ ...context, signal }), name)
        answered = name
        return keys
      } catch (error) {
        if (named === true || name === answered || isFinal(error)) throw failureOf(error, name)
        reasons.push(`; ${name}: ${whyNothing(error)}`)
      }
    }
    throw unavailable(`no credentials in ${places.join(', ')}${reasons.join('')}`)
  }

  return {
    fetch: () => withDeadline(search),
    get answered() {
      return answered
    },
  }
}

const unavailable = (detail: string, cause?: unknown): Failure =>
  new Failure('aws_identity_unavailable', { detail, ...(cause === undefined ? {} : { cause }) })

/** Whether the chain stops after this error, though the source is not configured. */
const isFinal = (error: unknown): boolean =>
  error instanceof CredentialSourceError ? error.isFinal : !(error instanceof OutboundError)

function failureOf(error: unknown, name: AmbientName): Failure {
  if (error instanceof Failure) return error
  return unavailable(`${name}: ${whyNothing(error) ?? JSON.stringify(causeOf(error))}`, error)
}

function keysFound(found: FoundKeys, name: AmbientName): AwsKeys {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = found
  const expiresAtMs = expiration === undefined ? Infinity : expiration.getTime()
  const areUsable = [accessKeyId, secretAccessKey, sessionToken || 'none'].every((text) => VISIBLE_ASCII.test(text))
  if (!areUsable || Number.isNaN(expiresAtMs)) throw unavailable(`${name} returned no valid credentials`)
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: sessionToken ? new Secret(sessionToken) : undefined,
    expiresAtMs,
  }
}

async function withDeadline<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      late.abort()
      // An aborted fetch reports its own error first.
      setTimeout(() => reject(unavailable(`no response within ${DEADLINE_MS / 1000} s`)), ENDING_MS)
    }, DEADLINE_MS)
  })
  try {
    return await Promise.race([work(late.signal), deadline])
  } finally {
    clearTimeout(timer)
  }
}

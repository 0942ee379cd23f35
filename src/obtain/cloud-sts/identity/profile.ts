import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import path from 'node:path'
import type * as Providers from '@aws-sdk/credential-providers'
import type { loadSharedConfigFiles } from '@smithy/core/config'
import { Failure, type Outbound } from '../../../core/index.ts'
import { fileProblem, readBoundedAsync } from '../../../files/index.ts'
import { createSmithyHandler } from '../../../net/index.ts'
import { processKeys } from './credential-process.ts'
import { environmentKeys, type Env, webIdentityKeys } from './environment.ts'
import { CredentialSourceError, type FoundKeys } from './keys.ts'
import type { RoleAssumers } from './role-assumers.ts'

// Loaded with the first config that needs it.
const load = createRequire(import.meta.url)

export interface ProfileDeps {
  readonly env: Env
  readonly assumers: RoleAssumers
  /** To IAM Identity Center (SSO). */
  readonly sso: Outbound
  /** Kills a `credential_process`. */
  readonly signal: AbortSignal
}

type Profile = Readonly<Record<string, string | undefined>>

const MAX_FILE_BYTES = 1024 * 1024

interface ProfileFiles {
  readonly profiles: ReadonlyMap<string, Profile>
  /** The files that contain a profile; both if neither does. */
  where(name: string): string
  /** A missing file that a variable names. */
  readonly missing: string | undefined
}

/** Reads the AWS configuration files. A missing file is empty; throws `CredentialSourceError` for one that can't be read. */
async function readProfiles(env: Env): Promise<ProfileFiles> {
  const config = fileOf(env, 'AWS_CONFIG_FILE', 'config')
  const credentials = fileOf(env, 'AWS_SHARED_CREDENTIALS_FILE', 'credentials')
  const missing = [await isMissing(config), await isMissing(credentials)].find((file) => file !== undefined)
  const { loadSharedConfigFiles: loadFiles } = load('@smithy/core/config') as {
    loadSharedConfigFiles: typeof loadSharedConfigFiles
  }
  const { configFile, credentialsFile } = await loadFiles({
    configFilepath: config.file,
    filepath: credentials.file,
    ignoreCache: true,
  })
  const profiles = new Map<string, Profile>(Object.entries(configFile))
  for (const [name, fields] of Object.entries(credentialsFile)) profiles.set(name, { ...profiles.get(name), ...fields })
  const has = { config: new Set(Object.keys(configFile)), credentials: new Set(Object.keys(credentialsFile)) }
  return {
    profiles,
    missing,
    where: (name) =>
      [...(has.config.has(name) ? [config.file] : []), ...(has.credentials.has(name) ? [credentials.file] : [])].join(
        ' and ',
      ) || `${config.file} and ${credentials.file}`,
  }
}

interface NamedFile {
  readonly file: string
  readonly variable: string | undefined
}

function fileOf(env: Env, variable: string, usual: string): NamedFile {
  const home = env['HOME'] || homedir()
  const named = env[variable]
  if (!named) return { file: path.join(home, '.aws', usual), variable: undefined }
  return { file: named.startsWith('~/') ? path.join(home, named.slice(2)) : named, variable }
}

/** Describes a missing file that a variable names. */
async function isMissing({ file, variable }: NamedFile): Promise<string | undefined> {
  // The usual way to disable the file.
  if (file === '/dev/null') return undefined
  try {
    await readBoundedAsync(file, MAX_FILE_BYTES)
    return undefined
  } catch (error) {
    const problem = fileProblem(error)
    const what = `the AWS configuration file ${JSON.stringify(file)}${variable === undefined ? '' : ` (${variable})`} is ${problem}`
    if (problem !== 'missing') throw new CredentialSourceError(what, { isFinal: true })
    return variable === undefined ? undefined : what
  }
}

/** The fields of the profile that the environment selects; empty when the files are unreadable. */
export async function settingsOf(env: Env): Promise<Profile> {
  const files = await readProfiles(env).catch(() => undefined)
  return files?.profiles.get(env['AWS_PROFILE'] || 'default') ?? {}
}

const CREDENTIAL_FIELDS = [
  'aws_access_key_id',
  'aws_secret_access_key',
  'role_arn',
  'source_profile',
  'credential_source',
  'web_identity_token_file',
  'credential_process',
  'login_session',
] as const

/**
 * The keys of a profile of the AWS configuration files, resolved as the AWS SDKs do: `named`, else `AWS_PROFILE`, else
 * `default`. The error names files, profile and the failing step. It is final except for a `default` profile without
 * credentials. Throws `CredentialSourceError` and the failures of STS.
 */
export async function profileKeys(named: string | undefined, deps: ProfileDeps): Promise<FoundKeys> {
  const chosen = named ?? (deps.env['AWS_PROFILE'] || undefined)
  const files = await readProfiles(deps.env)
  if (chosen === undefined && !hasCredentials(files.profiles.get('default')))
    throw new CredentialSourceError(files.missing ?? `no profile "default" with credentials in ${files.where('')}`, {
      isFinal: files.missing !== undefined,
    })
  return keysOf({ name: chosen ?? 'default', files, deps, from: [] })
}

const hasCredentials = (fields: Profile = {}): boolean =>
  CREDENTIAL_FIELDS.some((field) => fields[field] !== undefined) || isSso(fields)
const isSso = (fields: Profile): boolean => Object.keys(fields).some((field) => field.startsWith('sso_'))

interface Step {
  readonly name: string
  readonly files: ProfileFiles
  readonly deps: ProfileDeps
  /** The profiles whose source chain led here. */
  readonly from: readonly string[]
}

async function keysOf(step: Step): Promise<FoundKeys> {
  const { name, files } = step
  const fields = files.profiles.get(name)
  if (fields === undefined) throw failed(step, `is not there${files.missing === undefined ? '' : `; ${files.missing}`}`)
  try {
    return await keysIn(step, fields)
  } catch (error) {
    // The error already names the step.
    if (error instanceof StepError) throw error
    if (error instanceof CredentialSourceError) throw failed(step, error.message, error.cause)
    if (!(error instanceof Failure)) throw error
    const { code, detail = code, retryAfterSeconds, cause } = error
    throw new Failure(code, {
      detail: `profile: ${placeOf(step)}: ${detail}`,
      cause,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    })
  }
}

class StepError extends CredentialSourceError {}

const failed = (step: Step, reason: string, cause?: unknown): StepError =>
  new StepError(`${placeOf(step)}: ${reason}`, { isFinal: true, cause })

const placeOf = ({ name, files, from }: Step): string =>
  `${JSON.stringify(name)} of ${files.where(name)}${
    from.length === 0
      ? ''
      : `, the source of ${from
          .toReversed()
          .map((each) => JSON.stringify(each))
          .join(', the source of ')}`
  }`

/** Resolves a profile as `@aws-sdk/credential-provider-ini` does; what that ignores silently is an error here. */
function keysIn(step: Step, fields: Profile): FoundKeys | Promise<FoundKeys> {
  const { deps, from } = step
  const { aws_access_key_id: id, aws_secret_access_key: secret } = fields
  const isStatic = id !== undefined && secret !== undefined
  if ((id === undefined) !== (secret === undefined))
    throw new CredentialSourceError(
      `has ${id === undefined ? 'aws_secret_access_key and no aws_access_key_id' : 'aws_access_key_id and no aws_secret_access_key'}`,
    )
  // A source's keys take precedence over its role: a profile may be its own source.
  if (isStatic && from.length > 0) return staticKeys(fields)
  if (fields['source_profile'] !== undefined || fields['credential_source'] !== undefined) return roleKeys(step, fields)
  if (fields['web_identity_token_file'] !== undefined || fields['role_arn'] !== undefined)
    return webIdentityOf(fields, deps)
  if (isStatic) return staticKeys(fields)
  const { credential_process: command } = fields
  if (command !== undefined) return processKeys(command, deps.signal)
  if (isSso(fields)) return ssoKeys(step, fields)
  if (fields['login_session'] !== undefined)
    throw new CredentialSourceError(`SSO profiles are not supported; ${exportHint(step.name)}`)
  throw new CredentialSourceError(`has no credentials; expected one of ${CREDENTIAL_FIELDS.join(', ')}, sso_session`)
}

const staticKeys = (fields: Profile): FoundKeys => ({
  accessKeyId: fields['aws_access_key_id'] ?? '',
  secretAccessKey: fields['aws_secret_access_key'] ?? '',
  ...(fields['aws_session_token'] === undefined ? {} : { sessionToken: fields['aws_session_token'] }),
})

/** Default role session name of a profile. */
const SESSION = 'mcp-extauth'

/** Assumes the role of a profile with the keys of its source. */
async function roleKeys(step: Step, fields: Profile): Promise<FoundKeys> {
  const { source_profile: source, credential_source: place, role_arn: role } = fields
  if (source !== undefined && place !== undefined)
    throw new CredentialSourceError('has both source_profile and credential_source; expected one of them')
  if (role === undefined && source !== undefined) throw new CredentialSourceError('has source_profile and no role_arn')
  if (fields['mfa_serial'] !== undefined)
    throw new CredentialSourceError(
      `requires an MFA code (mfa_serial), which is not supported; ${exportHint(step.name)}`,
    )
  const seconds = Number(fields['duration_seconds'] ?? '3600')
  if (!Number.isInteger(seconds) || seconds <= 0)
    throw new CredentialSourceError('its duration_seconds is not a whole number')
  const keys = source === undefined ? sourceKeys(step, place) : await sourceProfileKeys(step, source)
  if (role === undefined) return keys
  const { external_id: ExternalId } = fields
  return step.deps.assumers.withKeys(keys, {
    RoleArn: role,
    RoleSessionName: fields['role_session_name'] || SESSION,
    DurationSeconds: seconds,
    ...(ExternalId === undefined ? {} : { ExternalId }),
  })
}

function sourceProfileKeys({ name, files, deps, from }: Step, source: string): Promise<FoundKeys> {
  if (from.includes(source))
    throw new CredentialSourceError(`its source_profile ${JSON.stringify(source)} forms a cycle`)
  return keysOf({ name: source, files, deps, from: [...from, name] })
}

/** AWS SDKs and Tools Reference Guide, assume role credential provider. */
function sourceKeys({ deps }: Step, place: string | undefined): FoundKeys {
  if (place === 'Environment') return environmentKeys(deps.env)
  if (place === 'Ec2InstanceMetadata' || place === 'EcsContainer')
    throw new CredentialSourceError(
      `its credential_source ${place} uses a metadata service; expected "instance" or "container" in chain, and its role in a source of type role`,
    )
  throw new CredentialSourceError(
    `its credential_source is ${JSON.stringify(place)}; expected Environment, Ec2InstanceMetadata or EcsContainer`,
  )
}

function webIdentityOf(fields: Profile, { assumers }: ProfileDeps): Promise<FoundKeys> {
  const { role_arn: roleArn, web_identity_token_file: file } = fields
  if (file === undefined)
    throw new CredentialSourceError(
      'has role_arn; expected source_profile, credential_source or web_identity_token_file as well',
    )
  if (roleArn === undefined) throw new CredentialSourceError('has web_identity_token_file and no role_arn')
  return webIdentityKeys(
    { file, variable: 'web_identity_token_file', roleArn, session: fields['role_session_name'] },
    assumers,
  )
}

const SSO_FIELDS = ['sso_account_id', 'sso_role_name', 'sso_region', 'sso_start_url'] as const

/** The role of an SSO profile, with the session that `aws sso login` cached. */
async function ssoKeys({ name, files, deps }: Step, fields: Profile): Promise<FoundKeys> {
  const { sso_session: session } = fields
  const of = session === undefined ? undefined : files.profiles.get(`sso-session.${session}`)
  if (session !== undefined && of === undefined)
    throw new CredentialSourceError(`its sso_session ${JSON.stringify(session)} does not exist`)
  const all: Profile = { ...fields, ...of }
  const absent = SSO_FIELDS.filter((field) => !all[field])
  if (absent.length > 0) throw new CredentialSourceError(`has SSO and no ${absent.join(', ')}`)
  const { fromSSO } = load('@aws-sdk/credential-providers') as typeof Providers
  try {
    return await fromSSO({
      profile: name,
      configFilepath: fileOf(deps.env, 'AWS_CONFIG_FILE', 'config').file,
      filepath: fileOf(deps.env, 'AWS_SHARED_CREDENTIALS_FILE', 'credentials').file,
      ignoreCache: true,
      logger: QUIET,
      clientConfig: { requestHandler: createSmithyHandler(deps.sso), maxAttempts: 1, logger: QUIET },
    })()
  } catch (error) {
    throw new CredentialSourceError(
      `its SSO session returned no credentials: it has expired or is missing, or the role is not assigned; run "aws sso login --profile ${shown(name)}", or ${exportHint(name)}`,
      { cause: error },
    )
  }
}

/** The SDK would write to the console otherwise. */
const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

const exportHint = (name: string): string =>
  `give the proxy what "aws configure export-credentials --profile ${shown(name)} --format env" prints, with "environment" in chain`
const shown = (name: string): string =>
  /^[\w.@+=,/-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`

import { fileProblem, readBoundedAsync } from '../../../files/index.ts'
import { CredentialSourceError, type FoundKeys } from './keys.ts'
import type { RoleAssumers } from './role-assumers.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** The keys in the environment. Throws `CredentialSourceError` for half of a pair. */
export function environmentKeys(env: Env): FoundKeys {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
  if (!accessKeyId || !secretAccessKey) {
    const names = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']
    const [set = '', other = ''] = accessKeyId ? names : names.toReversed()
    throw new CredentialSourceError(
      accessKeyId || secretAccessKey ? `${set} is set; expected ${other} as well` : `expected ${names.join(' and ')}`,
    )
  }
  const { AWS_SESSION_TOKEN: sessionToken, AWS_CREDENTIAL_EXPIRATION: expiration } = env
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken ? { sessionToken } : {}),
    ...(expiration ? { expiration: new Date(expiration) } : {}),
  }
}

/** STS accepts tokens of at most 20,000 characters. */
const MAX_TOKEN_BYTES = 64 * 1024
/** Default role session name. */
const SESSION = 'mcp-extauth'

export interface WebIdentity {
  readonly file: string
  /** The variable that names the file. */
  readonly variable: string
  readonly roleArn: string
  readonly session: string | undefined
}

/** Role credentials for the token in a file. Throws `CredentialSourceError` and STS failures. */
export async function webIdentityKeys(
  { file, variable, roleArn, session }: WebIdentity,
  { withWebIdentity }: Pick<RoleAssumers, 'withWebIdentity'>,
): Promise<FoundKeys> {
  let token: Buffer
  try {
    token = await readBoundedAsync(file, MAX_TOKEN_BYTES)
  } catch (error) {
    const problem = fileProblem(error)
    throw new CredentialSourceError(`its token file ${JSON.stringify(file)} (${variable}) is ${problem}`, {
      cause: error,
    })
  }
  return withWebIdentity({
    RoleArn: roleArn,
    RoleSessionName: session || SESSION,
    WebIdentityToken: token.toString('latin1').trim(),
  })
}

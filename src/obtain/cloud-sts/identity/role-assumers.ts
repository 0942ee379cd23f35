import type { AssumeRoleCommandInput, AssumeRoleWithWebIdentityCommandInput, Credentials } from '@aws-sdk/client-sts'
import { createStsClient, keysOfSession, loadSts, type StsClientOptions } from '../sts-client.ts'
import { stsFailure } from '../sts-failure.ts'

/** What the SDK's providers call keys. */
interface SdkKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/** STS as the SDK's providers ask it, over our own connections. */
export interface RoleAssumers {
  readonly withWebIdentity: (input: AssumeRoleWithWebIdentityCommandInput) => Promise<SdkKeys>
  readonly withKeys: (keys: SdkKeys, input: AssumeRoleCommandInput) => Promise<SdkKeys>
}

/** Both throw `Failure`: who is refused here is the process and no caller. */
export function createRoleAssumers(options: Omit<StsClientOptions, 'keys'>, now: () => number): RoleAssumers {
  const fetched = async (answer: Promise<{ Credentials?: Credentials | undefined }>): Promise<SdkKeys> => {
    try {
      const { accessKeyId, secretAccessKey, sessionToken, expiresAtMs } = keysOfSession(
        (await answer).Credentials,
        now(),
      )
      const token = sessionToken === undefined ? {} : { sessionToken: sessionToken.reveal() }
      return {
        accessKeyId,
        secretAccessKey: secretAccessKey.reveal(),
        ...token,
        expiration: new Date(expiresAtMs),
      }
    } catch (error) {
      throw stsFailure(error, now(), 'process')
    }
  }
  return {
    withWebIdentity(input) {
      const { AssumeRoleWithWebIdentityCommand } = loadSts()
      return fetched(createStsClient(options).send(new AssumeRoleWithWebIdentityCommand(input)))
    },
    withKeys(keys, input) {
      const { AssumeRoleCommand } = loadSts()
      return fetched(
        createStsClient({ ...options, keys: () => Promise.resolve(keys) }).send(new AssumeRoleCommand(input)),
      )
    },
  }
}

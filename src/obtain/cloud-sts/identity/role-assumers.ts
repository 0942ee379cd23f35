import type { AssumeRoleCommandInput, AssumeRoleWithWebIdentityCommandInput, Credentials } from '@aws-sdk/client-sts'
import { createStsClient, keysOfSession, loadSts, type StsClientOptions } from '../sts-client.ts'
import { stsFailure } from '../sts-failure.ts'
import type { FoundKeys } from './keys.ts'

/** Assumes roles for the process itself. */
export interface RoleAssumers {
  readonly withWebIdentity: (input: AssumeRoleWithWebIdentityCommandInput) => Promise<FoundKeys>
  readonly withKeys: (keys: FoundKeys, input: AssumeRoleCommandInput) => Promise<FoundKeys>
}

/** Both throw `Failure`; rejections concern the process, not a caller. */
export function createRoleAssumers(options: Omit<StsClientOptions, 'keys'>, now: () => number): RoleAssumers {
  const fetched = async (answer: Promise<{ Credentials?: Credentials | undefined }>): Promise<FoundKeys> => {
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

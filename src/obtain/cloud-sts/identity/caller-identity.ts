import { Failure } from '../../../core/index.ts'
import { createStsClient, loadSts, type StsClientOptions } from '../sts-client.ts'
import { stsFailure } from '../sts-failure.ts'
import type { KeysOnly } from './keys.ts'

/** Longer ones are no ARN of anybody. */
const LONGEST_ARN = 2_048

/** Whom AWS takes the holder of these keys for: an ARN, which everybody may ask for. Throws `Failure`. */
export async function callerIdentity(
  options: Omit<StsClientOptions, 'keys'>,
  { accessKeyId, secretAccessKey, sessionToken }: KeysOnly,
  nowMs: number,
): Promise<string> {
  const token = sessionToken === undefined ? {} : { sessionToken: sessionToken.reveal() }
  const keys = { accessKeyId, secretAccessKey: secretAccessKey.reveal(), ...token }
  const client = createStsClient({ ...options, keys: () => Promise.resolve(keys) })
  const { GetCallerIdentityCommand } = loadSts()
  try {
    const { Arn = '' } = await client.send(new GetCallerIdentityCommand({}))
    if (/^arn:[\x21-\x7e]+$/.test(Arn) && Arn.length <= LONGEST_ARN) return Arn
  } catch (error) {
    throw stsFailure(error, nowMs, 'process')
  }
  throw new Failure('sts_failed', { detail: 'STS did not say whose keys these are' })
}

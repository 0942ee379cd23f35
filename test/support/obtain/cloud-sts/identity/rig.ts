import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { vi } from 'vitest'
import { type LabMetadata, startLabMetadata } from '../../../../../lab/metadata.ts'
import { credentialsXml, startStsDouble, type StsDouble } from '../support/sts-double.ts'

/** The shapes of access key ids: who gave them. */
export const FROM = {
  environment: 'AKIAENVIRONMENT00001',
  webIdentity: 'ASIAWEBIDENTITY00001',
  container: 'ASIACONTAINER0000001',
  profile: 'AKIAPROFILE000000001',
  assumed: 'ASIAASSUMEDROLE00001',
  process: 'AKIAPROCESS000000001',
  sso: 'ASIASSOSSOSSOSSO0001',
} as const
export const CONTAINER_TOKEN = 'the-token-of-the-pod'
export const END_MS = Date.UTC(2039, 0, 1)

const CONFIG = `
[profile chained]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = static
[profile from-environment]
role_arn = arn:aws:iam::123456789012:role/of-profile
credential_source = Environment
[profile sso]
sso_start_url = https://example.awsapps.com/start
sso_account_id = 123456789012
sso_region = eu-central-1
sso_role_name = dev
[profile session]
login_session = arn:aws:iam::123456789012:user/ada
[profile over-sso]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = sso
[profile with-token]
role_arn = arn:aws:iam::123456789012:role/of-profile
web_identity_token_file = TOKENFILE
[profile of-instance]
role_arn = arn:aws:iam::123456789012:role/of-profile
credential_source = Ec2InstanceMetadata
[profile of-container]
role_arn = arn:aws:iam::123456789012:role/of-profile
credential_source = EcsContainer
[profile over-instance]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = of-instance
[profile empty]
region = eu-central-1
[profile half]
aws_access_key_id = AKIAHALFHALFHALF0001
[profile over-half]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = half
[profile over-nothing]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = nothing
[profile role-alone]
role_arn = arn:aws:iam::123456789012:role/of-profile
[profile two-sources]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = static
credential_source = Environment
[profile circle]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = round
[profile round]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = circle
[profile mfa]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = static
mfa_serial = arn:aws:iam::123456789012:mfa/ada
[profile unknown-source]
role_arn = arn:aws:iam::123456789012:role/of-profile
credential_source = Somewhere
[profile no-token]
role_arn = arn:aws:iam::123456789012:role/of-profile
web_identity_token_file = /nothing/token
[profile process]
credential_process = echo '{"Version":1,"AccessKeyId":"${FROM.process}","SecretAccessKey":"s"}'
[profile process-fails]
credential_process = echo secret-output; exit 3
[profile process-text]
credential_process = echo secret-output
[profile process-floods]
credential_process = yes secret-output
[profile process-hangs]
credential_process = sh -c 'echo $$ > PIDFILE; sleep 600'; true
[profile sso-current]
sso_session = here
sso_account_id = 123456789012
sso_role_name = dev
[profile over-sso-current]
role_arn = arn:aws:iam::123456789012:role/of-profile
source_profile = sso-current
[profile sso-no-session]
sso_session = gone
sso_account_id = 123456789012
sso_role_name = dev
[profile sso-half]
sso_session = here
sso_role_name = dev
[sso-session here]
sso_start_url = https://example.awsapps.com/start
sso_region = eu-central-1
`
const CREDENTIALS = `
[static]
aws_access_key_id = ${FROM.profile}
aws_secret_access_key = secret
`

export interface Rig {
  readonly directory: string
  readonly sts: StsDouble
  readonly metadata: LabMetadata
  readonly file: (name: string) => string
  /** Nothing of AWS is in the environment but this. */
  environment(values: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Everything that an AWS process may find around it, on loopback. */
export async function startRig(): Promise<Rig> {
  const directory = await mkdtemp(path.join(tmpdir(), 'ambient-'))
  const file = (name: string) => path.join(directory, name)
  await writeFile(file('token'), 'header.payload.signature')
  await writeFile(file('pod-token'), CONTAINER_TOKEN)
  await writeFile(file('wrong-token'), 'another')
  await writeFile(file('config'), CONFIG.replace('TOKENFILE', file('token')).replace('PIDFILE', file('pid')))
  await writeFile(file('credentials'), CREDENTIALS)
  const sts = await startStsDouble()
  sts.answer = (form) => {
    const action = form.get('Action') ?? ''
    const accessKeyId = action === 'AssumeRole' ? FROM.assumed : FROM.webIdentity
    return { body: credentialsXml({ action, accessKeyId, expiration: new Date(Date.now() + 3_600_000).toISOString() }) }
  }
  const metadata = await startLabMetadata({
    port: 0,
    roleName: 'node',
    containerToken: CONTAINER_TOKEN,
    credentials: () => ({
      accessKeyId: FROM.container,
      secretAccessKey: 'secret',
      sessionToken: 'token',
      expiresAtMs: END_MS,
    }),
  })
  return {
    directory,
    sts,
    metadata,
    file,
    environment(values) {
      vi.unstubAllEnvs()
      for (const name of Object.keys(process.env).filter((each) => each.startsWith('AWS_'))) vi.stubEnv(name, undefined)
      const all = {
        AWS_REGION: 'eu-central-1',
        AWS_ENDPOINT_URL_STS: sts.url,
        AWS_CONFIG_FILE: file('config'),
        AWS_SHARED_CREDENTIALS_FILE: file('credentials'),
        AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url,
        ...values,
      }
      for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value)
      return all
    },
    async close() {
      vi.unstubAllEnvs()
      await Promise.all([sts.close(), metadata.close()])
      await rm(directory, { recursive: true })
    },
  }
}

import path from 'node:path'
import type { Secret } from '../../src/core/index.ts'
import { labConfig } from '../../src/cli/index.ts'
import { CONTAINER_PATH, type LabMetadata, type LabRole, type LabSts, startLabMetadata } from '../index.ts'

/** Whom tokens of the lab are for. */
export const AUDIENCE = 'extauth-lab'
/** The role of the proxy itself, as the metadata service knows it. */
export const SERVICE_ROLE = 'arn:cloud:iam::000000000000:role/lab-service'
export const HUB_ROLE = 'arn:cloud:iam::000000000000:role/lab-hub'
/** The secret that a pod shows to the metadata service. */
export const POD_TOKEN = 'lab-pod-identity'

/** The roles that config/lab/cloud-sts.yaml and aws.yaml name, and whom they trust. */
export const ROLES: readonly LabRole[] = [
  { arn: 'arn:cloud:iam::000000000000:role/lab-admin', audiences: [AUDIENCE], groups: ['admins'] },
  { arn: 'arn:cloud:iam::000000000000:role/lab-developer', audiences: [AUDIENCE], groups: ['dev'] },
  { arn: 'arn:cloud:iam::000000000000:role/lab-reader', audiences: [AUDIENCE] },
  // Of config/lab/aws.yaml: the hub trusts the proxy, and the roles of callers trust the hub.
  { arn: HUB_ROLE, audiences: [], trusts: { roles: [SERVICE_ROLE], externalId: 'lab-hub' } },
  {
    arn: 'arn:cloud:iam::000000000000:role/lab-guest',
    audiences: [],
    trusts: { roles: [HUB_ROLE], externalId: 'lab', tags: ['User'] },
  },
  ...['search', 'payments'].map((team) => ({
    arn: `arn:cloud:iam::000000000000:role/lab-${team}`,
    audiences: [],
    trusts: { roles: [HUB_ROLE], externalId: 'lab-team', tags: ['Team', 'User'], allowsSourceIdentity: true },
  })),
]

/** The metadata service, whose credentials live for `seconds`, and the environment in which the proxy finds it. Throws `PortInUse`. */
export async function startAws(
  port: number,
  podToken: Secret,
  sts: LabSts,
  seconds = 3_600,
): Promise<{ readonly metadata: LabMetadata; readonly env: Readonly<Record<string, string>> }> {
  const metadata = await startLabMetadata({
    port,
    roleName: 'lab-service',
    containerToken: podToken.reveal(),
    credentials: () => sts.issue(SERVICE_ROLE, 'lab-proxy', seconds),
  })
  const env = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: metadata.url + CONTAINER_PATH,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: path.join(labConfig(), 'secrets', POD_TOKEN, 'token'),
  }
  return { metadata, env }
}

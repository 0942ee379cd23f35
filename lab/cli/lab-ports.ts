/** Ports on loopback; 0 takes a free one. */
export interface LabPorts {
  readonly proxy: number
  readonly admin: number
  readonly identity: number
  readonly identityTls: number
  readonly backend: number
  readonly sts: number
  readonly workspace: number
  readonly metadata: number
}

/** The ports that are written in config/lab. */
export const LAB_PORTS: LabPorts = {
  proxy: 8080,
  admin: 8081,
  identity: 8082,
  backend: 8083,
  sts: 8084,
  identityTls: 8085,
  workspace: 8086,
  metadata: 8087,
}

/** Which option of `extauth lab` moves which port. */
export const LAB_PORT_OPTIONS: Readonly<Record<keyof LabPorts, string>> = {
  proxy: 'port',
  admin: 'admin-port',
  identity: 'idp-port',
  identityTls: 'idp-tls-port',
  backend: 'backend-port',
  sts: 'sts-port',
  workspace: 'workspace-port',
  metadata: 'metadata-port',
}

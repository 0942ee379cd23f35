import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'

const PAGE = path.join(import.meta.dirname, '../../../docs/gitops.md')
/** Objects of a real API server in each state, and what tools make of them; written by `npm run test:cluster -- --install --record`. */
export const GITOPS_RECORD_PATH = path.join(import.meta.dirname, 'gitops-record.json')

export interface GitopsVerdict {
  readonly argocd: string
  readonly flux: string
  readonly kstatus: string
}

/** The health of each state for waiting tools. */
export const WANTED: Readonly<Record<string, GitopsVerdict>> = {
  'config: not looked at yet': { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' },
  'config: ready': { argocd: 'Healthy', flux: 'Current', kstatus: 'Current' },
  'config: not valid': { argocd: 'Degraded', flux: 'Failed', kstatus: 'InProgress' },
  'config: deleted, and referred to': { argocd: 'Progressing', flux: 'InProgress', kstatus: 'Terminating' },
  'proxy: not looked at yet': { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' },
  'proxy: pods on their way': { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' },
  'proxy: ready': { argocd: 'Healthy', flux: 'Current', kstatus: 'Current' },
  'proxy: ready, then edited': { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' },
  'proxy: its config is missing': { argocd: 'Progressing', flux: 'InProgress', kstatus: 'InProgress' },
  'callers: not valid': { argocd: 'Degraded', flux: 'Failed', kstatus: 'InProgress' },
  'proxy: its callers are not valid': { argocd: 'Degraded', flux: 'Failed', kstatus: 'InProgress' },
  'server: its config is not valid': { argocd: 'Degraded', flux: 'Failed', kstatus: 'InProgress' },
  'proxy: not valid': { argocd: 'Degraded', flux: 'Failed', kstatus: 'InProgress' },
  'proxy: pods that the cluster does not take': { argocd: 'Degraded', flux: 'Failed', kstatus: 'InProgress' },
}

export interface GitopsRecord {
  /** Of the checks that are documented. */
  readonly checks: string
  readonly states: { readonly [state: string]: { readonly ready: string; readonly verdict: GitopsVerdict } }
}

export const readGitopsRecord = (): GitopsRecord => JSON.parse(readFileSync(GITOPS_RECORD_PATH, 'utf8')) as GitopsRecord

export interface GitopsChecks {
  readonly lua: string
  /** `inProgress`, `failed` and `current` of each kind. */
  readonly exprs: readonly Readonly<Record<string, string>>[]
  readonly hash: string
}

/** The checks as docs/gitops.md has them. */
export function documentedChecks(): GitopsChecks {
  const text = readFileSync(PAGE, 'utf8')
  const lua = /```lua\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  const yaml = /```yaml\n(healthCheckExprs:[\s\S]*?)```/.exec(text)?.[1] ?? ''
  const { healthCheckExprs: exprs } = parse(yaml) as { healthCheckExprs: Record<string, string>[] }
  const hash = createHash('sha256')
    .update(JSON.stringify([lua, exprs]))
    .digest('hex')
    .slice(0, 16)
  return { lua, exprs, hash }
}

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { KubeObject } from '../../../src/kube/index.ts'
import type { Spelling } from '../../support/resources/verdicts/spellings.ts'
import { judge } from './crdcheck.ts'

/** What kubectl makes of texts, without a server; null where it, or an API server's own code, refuses. */
export function readByKubectl(spellings: readonly Spelling[]): Map<Spelling, KubeObject | null> {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-spellings-'))
  try {
    const objects = spellings.map(({ text }) => {
      const file = path.join(directory, 'text.yaml')
      writeFileSync(file, text)
      // What touches a label only prints the whole object, as it was read.
      const { status, stdout } = spawnSync('kubectl', ['label', '--local', '-f', file, '-o', 'json', 'judged-'], {
        encoding: 'utf8',
      })
      return status === 0 ? (JSON.parse(stdout) as KubeObject) : null
    })
    const verdicts = judge(
      objects.map((object) => ({ kind: 'MCPExternalAuthConfig', what: '', object: { ...object } })),
    )
    return new Map(spellings.map((one, index) => [one, verdicts[index]?.ok === true ? (objects[index] ?? null) : null]))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

import { globSync } from 'node:fs'
import path from 'node:path'
import type { Mutation } from './mutation.ts'

const ROWS = path.join(import.meta.dirname, 'rows')

/** All rows: one file per module of `src`, named after it. */
export const MUTATIONS: readonly Mutation[] = (
  await Promise.all(
    globSync('*.ts', { cwd: ROWS })
      .sort()
      .map(async (name) => {
        const { default: rows } = (await import(path.join(ROWS, name))) as { default: readonly Mutation[] }
        return rows
      }),
  )
).flat()

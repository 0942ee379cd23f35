import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fastTests, LEFT_OUT } from '../support/fast.ts'

describe('the fast tests', () => {
  const root = path.join(import.meta.dirname, '../..')
  const files = fastTests(root)

  it('are most of all, and none that starts a process, a browser or a store', () => {
    expect(files.length).toBeGreaterThan(250)
    expect(files).toContain('test/http/header-policy.test.ts')
    expect(files.filter((name) => /chromium|\/e2e\/|\/cluster\//.test(name))).toEqual([])
    expect(files).not.toContain('test/bridge/process.test.ts')
  })

  it('leave out no file that is not there', () => {
    expect([...LEFT_OUT].filter((name) => !existsSync(path.join(root, name)))).toEqual([])
  })
})

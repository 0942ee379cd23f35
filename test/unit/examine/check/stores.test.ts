import { expect, it } from 'vitest'
import { createClockNotes } from '../../../../src/examine/check/clock.ts'
import { createStoreNotes } from '../../../../src/examine/check/stores.ts'

const state = { remarks: [], isBlind: false, clockAheadMs: undefined }

it('stores say what may be lost in them, each thing once, and how far their clock is off', () => {
  const times = createClockNotes()
  const notes = createStoreNotes(times)
  notes.take([state])
  expect(notes.lines()).toEqual([])
  notes.take([
    { ...state, remarks: ['it evicts'] },
    { ...state, remarks: ['it evicts'], isBlind: true, clockAheadMs: -9_000 },
  ])
  expect(notes.lines()).toMatchObject([
    { check: 'store', status: 'warning', detail: 'it evicts' },
    { check: 'store', status: 'warning', detail: expect.stringContaining('the eviction policy is unknown') as string },
  ])
  expect(times.lines()).toMatchObject([
    { check: 'clock', status: 'failed', detail: expect.stringContaining('9 s behind') as string },
  ])
})

import { expect, it } from 'vitest'
import { compareAnswers } from './differential.ts'

it.each([1, 20261123])('whatever is taken, Node takes for the same (seed %i)', async (seed) => {
  const { differences, whole, refused, cut } = await compareAnswers(seed, 3000)
  expect(differences).toEqual([])
  // A generator that makes nothing but noise would find nothing.
  expect(Math.min(whole, refused, cut)).toBeGreaterThan(50)
})

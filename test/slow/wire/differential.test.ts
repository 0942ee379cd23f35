import { expect, it } from 'vitest'
import { compareAnswers } from '../../support/wire/differential.ts'
import { compareRequests } from '../../support/wire/differential-requests.ts'

it.each([1, 20261123])('whatever answer is taken, Node takes for the same (seed %i)', async (seed) => {
  const { differences, whole, refused, cut } = await compareAnswers(seed, 3000)
  expect(differences).toEqual([])
  // A generator that makes nothing but noise would find nothing.
  expect(Math.min(whole, refused, cut)).toBeGreaterThan(20)
})

it.each([1, 20261124])('whatever requests are taken, Node takes for the same (seed %i)', async (seed) => {
  const { differences, whole, upgraded, refused, open } = await compareRequests(seed, 3000)
  expect(differences).toEqual([])
  expect(Math.min(whole, refused, open)).toBeGreaterThan(50)
  expect(upgraded).toBeGreaterThan(5)
})

'use strict'
var fs = require('fs')

/** What of a file is written down: its size, its time, and the sum of its content. */
exports.whatIs = function (file) {
  var now = fs.statSync(file)
  return [now.size, now.mtimeMs, sumOf(file)]
}

/**
 * The files that are others now than when dist/ below `root` was made of them (scripts/build.ts writes them down), by their names
 * below it; undefined where nothing says what it was made of. A copy of a checkout, or a branch that was left and come back to,
 * has other times and the same content.
 */
exports.changedSince = function (root) {
  var files
  try {
    files = JSON.parse(fs.readFileSync(root + '/dist/sources.json', 'utf8'))
  } catch (error) {
    return undefined
  }
  return Object.keys(files).filter(function (name) {
    var file = root + '/' + name
    var made = files[name]
    try {
      var now = fs.statSync(file)
      return now.size !== made[0] || (now.mtimeMs !== made[1] && sumOf(file) !== made[2])
    } catch (error) {
      return true
    }
  })
}

function sumOf(file) {
  return require('crypto').createHash('sha256').update(fs.readFileSync(file)).digest('base64')
}

# frozen_string_literal: true

# An application that Ractors can share: nothing in it changes once it is made.
require_relative "primes"

run Primes.new(limit: 200_000)

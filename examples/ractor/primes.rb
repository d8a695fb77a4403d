# frozen_string_literal: true

# Counts primes, which keeps a processor busy and waits for nothing.
class Primes
  HEADERS = { "content-type" => "text/plain; charset=utf-8" }.freeze
  ROUTE = %r{\A/primes/(\d{1,9})\z}

  def initialize(limit:)
    @limit = limit
  end

  def call(env)
    number = env["PATH_INFO"][ROUTE, 1]&.to_i
    return [404, HEADERS, ["Try /primes/#{@limit}\n"]] unless number&.between?(0, @limit)

    who = Ractor.current.name || "the main Ractor"
    [200, HEADERS, ["#{count(number)} primes up to #{number}, counted by #{who}\n"]]
  end

  private

  # Each request makes the objects that it changes. (Sieve of Eratosthenes.)
  def count(number)
    sieve = Array.new(number + 1, true)
    sieve.fill(false, 0, 2)
    (2..Integer.sqrt(number)).each do |prime|
      (prime * prime).step(number, prime) { |multiple| sieve[multiple] = false } if sieve[prime]
    end
    sieve.count(true)
  end
end

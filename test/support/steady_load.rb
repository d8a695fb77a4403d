# frozen_string_literal: true

require "support/steady_client"

# Clients that send requests all the time while something happens to the server: some over one connection each, some
# over a new one for each request.
class SteadyLoad
  # @!attribute worker [Integer, nil] the server's process that has answered on that connection before; nil: none has
  # @!attribute error [String]
  Failure = Data.define(:worker, :error)
  # Seconds between two requests of a client: processes that start meanwhile need the processors, too. The nightly run
  # has a tenth of it.
  PAUSE = 0.02 / Integer(ENV.fetch("HEDDLE_TEST_REPEAT", 1))

  # @return [Array<Failure>]
  attr_reader :failures

  # @param host [String]
  # @param port [Integer]
  # @param kept [Integer] clients that keep their connection
  # @param fresh [Integer] clients that don't
  # @param path [String] answered with the process's number in `x-worker`
  # @param pause [Numeric] seconds between two requests of a client
  def initialize(host, port, kept: 4, fresh: 4, path: "/", pause: PAUSE)
    @path = path
    @pause = pause
    @failures = []
    @lock = Mutex.new
    @answers = Hash.new(0)
    @going = true
    @clients = Array.new(kept + fresh) { |number| SteadyClient.new(host, port, kept: number < kept) }
    @threads = @clients.map { |client| Thread.new { keep_asking(client) } }
  end

  # @return [Integer] requests that were answered
  def answered = @lock.synchronize { @answers.values.sum }

  # @return [Hash{Integer => Integer}] how many of them by which process
  def by_worker = @lock.synchronize { @answers.dup }

  # @return [Integer] connections that were closed between two requests without an announcement
  def closed = @clients.sum(&:closed)

  # Waits until so many more requests are answered.
  def wait_for(count)
    target = answered + count
    deadline = now + SteadyClient::TIMEOUT
    sleep 0.005 until answered >= target || now > deadline
    raise "the load stands still: #{failures.last(3)}" if answered < target
  end

  # @return [SteadyLoad] which is over
  def stop
    @going = false
    @threads.each { |thread| thread.join(SteadyClient::TIMEOUT) or raise "a client has no response yet" }
    self
  end

  private

  def keep_asking(client)
    while @going
      ask(client)
      sleep(@pause)
    end
    client.close
  end

  def ask(client)
    response = client.call("GET", @path)
    raise "answered with #{response.status}" unless response.status == 200

    @lock.synchronize { @answers[response.worker] += 1 }
  rescue StandardError => e
    error = "#{e.class}: #{e.message}"
    @lock.synchronize { @failures << Failure.new(worker: client.worker, error:) } if @going
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# frozen_string_literal: true

require "socket"

# Clients that ask again and again while something happens to the server: some over one connection each, some over a new
# one for each request. Nothing is asked twice: what fails, has failed.
class SteadyLoad
  # @!attribute worker [String, nil] the server's process that has answered on that connection before; nil: none has
  # @!attribute error [String]
  Failure = Data.define(:worker, :error)

  # Seconds that a client waits for anything.
  PATIENCE = 30
  private_constant :PATIENCE

  # @return [Array<Failure>]
  attr_reader :failures

  # @param host [String]
  # @param port [Integer]
  # @param kept [Integer] clients that keep their connection
  # @param fresh [Integer] clients that don't
  # @param path [String] answered with the process's number in `x-worker`
  # @param pause [Numeric] seconds between two requests of a client
  def initialize(host, port, kept: 4, fresh: 4, path: "/", pause: 0.001)
    @host = host
    @port = port
    @path = path
    @pause = pause
    @failures = []
    @lock = Mutex.new
    @answers = Hash.new(0)
    @closed = 0
    @going = true
    @threads = Array.new(kept) { Thread.new { keep_asking } } + Array.new(fresh) { Thread.new { ask_anew } }
  end

  # @return [Integer] requests that were answered
  def answered = @lock.synchronize { @answers.values.sum }

  # @return [Hash{String => Integer}] how many of them by which process
  def by_worker = @lock.synchronize { @answers.dup }

  # @return [Integer] connections that were closed between two requests and without a word
  attr_reader :closed

  # Waits until so many more requests are answered.
  def wait_for(count)
    target = answered + count
    deadline = now + PATIENCE
    sleep 0.005 until answered >= target || now > deadline
    raise "the load stands still: #{failures.last(3)}" if answered < target
  end

  # @return [SteadyLoad] which is over
  def stop
    @going = false
    @threads.each { |thread| thread.join(PATIENCE) or raise "a client has no response yet" }
    self
  end

  private

  def keep_asking
    socket = worker = nil
    while @going
      if socket&.wait_readable(0) # nothing was asked: it can only have ended
        @lock.synchronize { @closed += 1 }
        socket = socket.close
      end
      worker = nil unless socket
      socket, worker = ask(socket, worker)
      sleep(@pause)
    end
    socket&.close
  end

  def ask_anew
    while @going
      socket, = ask(nil, nil)
      socket&.close
      sleep(@pause)
    end
  end

  # @return [Array(TCPSocket, String), nil] what can be asked again
  def ask(socket, worker)
    socket ||= TCPSocket.new(@host, @port)
    socket.timeout = PATIENCE
    socket.write("GET #{@path} HTTP/1.1\r\nHost: a\r\n\r\n")
    head = socket.gets("\r\n\r\n") or raise EOFError, "closed without an answer"
    body = socket.read(head[/^content-length: (\d+)/i, 1].to_i)
    raise EOFError, "cut off: #{body.inspect}" if body.bytesize < head[/^content-length: (\d+)/i, 1].to_i
    raise "answered with #{head.lines.first}" unless head.start_with?("HTTP/1.1 200 ")

    worker = head[/^x-worker: (\d+)/i, 1]
    @lock.synchronize { @answers[worker] += 1 }
    return [socket, worker] unless head.match?(/^connection: close/i)

    socket.close
    nil
  rescue StandardError => e
    socket&.close
    @lock.synchronize { @failures << Failure.new(worker:, error: "#{e.class}: #{e.message}") } if @going
    nil
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

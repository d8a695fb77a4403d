# frozen_string_literal: true

require_relative "trial"
require "heddle/server"
require "json"
require "net/http"
require "support/served_process"
require "tmpdir"

# Trials within a server that is under load, protected as it is by itself.
module TrialServer
  include Trial

  KINDS = %w[ruby bcrypt zlib rsa flock sleep garbage].freeze
  CLIENTS = 8
  # Clients that also ask for what keeps Ruby's lock, which everybody else waits for.
  HOLDING = 2

  # A server with a tool in it.
  class Served < ServedProcess
    # @param folder [String] where its control socket is
    def initialize(command, folder:, environment:)
      path = File.join(folder, "control")
      @control = Heddle::Server::Control::Client.new(Heddle::Server::Control::Address.new(path:), timeout: PATIENCE)
      super([*command, "--control", "unix:#{path}"], environment:)
    end

    # @return [String] what it answers
    # @raise [RuntimeError] when that is no 200
    def ask(path) = connect { |connection| ask_over(connection, path) }

    # @yieldparam connection [Net::HTTP] kept between requests; what fails on it is not asked again
    def connect(&)
      connection = Net::HTTP.new(uri.host, uri.port)
      connection.max_retries = 0
      connection.read_timeout = PATIENCE
      connection.start(&)
    end

    # @return [String]
    def ask_over(connection, path)
      answer = connection.get("/#{path}")
      raise "GET /#{path}: #{answer.code} #{answer.body}\n#{output}" unless answer.code == "200"

      answer.body
    end

    # @return [Array<Integer>] their processes
    def workers = @control.status.fetch(:workers).map { |worker| worker.fetch(:pid) }

    # @return [Hash{Symbol => Integer}] how often each protection has had something to do, in all workers
    def protections
      workers = @control.status.fetch(:workers)
      { offload: workers.sum { |worker| worker.dig(:offload, :calls) || 0 },
        preempt: workers.sum { |worker| worker[:preemptions] || 0 },
        stall_report: workers.sum { |worker| worker.dig(:stalls, :count) || 0 },
        handoff: workers.size > 1 ? workers.sum { |worker| worker[:handed_off] || 0 } : nil }.compact
    end
  end

  # @param tool [String] a file of test/trials/tools
  # @param processes [Integer] one where the tool is asked what it saw
  # @yieldparam server [Served] which must end well
  def with_server(tool, processes: 1, environment: {})
    need_gem "bcrypt"
    variables = { "TRIAL_TOOL" => File.join(Trial::ROOT, "test/trials/tools/#{tool}.rb"), **environment }
    command = [*ServedProcess::HEDDLE, "serve", File.join(__dir__, "config.ru"), "-p", "0", "-w", processes.to_s,
               "--reserve-workers", "0", "--no-access-log"] # a reserve would begin on a busy machine
    Dir.mktmpdir do |folder|
      server = Served.new(command, folder:, environment: variables)
      begin
        workers = server.workers
        yield server

        assert_equal workers, server.workers, server.output
      ensure
        status = server.stop
      end
      assert_predicate status, :success?, server.output
      refute_match(/error|\[BUG\]/i, server.output)
    end
  end

  # All kinds of work at once, each answered as it should be, again and again until every protection has had something
  # to do meanwhile.
  # @param more [Array<String>] further paths
  def work(server, more: [])
    paths = KINDS.map { |kind| "work/#{kind}" } + more
    before = server.protections
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    loop do
      assert_empty wrong_answers(server, paths * 2)
      idle = server.protections.filter_map { |name, times| name if times == before.fetch(name) }
      return if idle.empty?

      flunk "had nothing to do: #{idle}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    end
  end

  private

  # Of clients at work beside each other, half of which keep their connection.
  def wrong_answers(server, paths)
    wrong = Thread::Queue.new
    Array.new(CLIENTS) do |number|
      Thread.new do
        asked = paths.rotate(number * 5) + (number < HOLDING ? ["work/hold"] : [])
        answers = number.even? ? asked.map { |path| server.ask(path) } : kept(server, asked)
        asked.zip(answers) do |path, answer|
          wrong << "#{path}: #{answer}" unless answer == (path[%r{work/(.+)}, 1] || "loaded")
        end
      end
    end.each(&:join)
    Array.new(wrong.size) { wrong.pop }
  end

  def kept(server, paths)
    server.connect { |connection| paths.map { |path| server.ask_over(connection, path) } }
  end
end

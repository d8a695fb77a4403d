# frozen_string_literal: true

require_relative "trial"
require "json"
require "net/http"
require "support/served_process"
require "tmpdir"

# Trials within a server that is under load, protected as it is by itself.
module TrialServer
  include Trial

  KINDS = %w[ruby bcrypt zlib rsa flock sleep garbage].freeze
  CLIENTS = 8
  ROUNDS = 2

  # A server with a tool in it.
  class Served < ServedProcess
    # @return [String] what it answers
    # @raise [RuntimeError] when that is no 200
    def ask(path)
      answer = get("/#{path}")
      raise "GET /#{path}: #{answer.code} #{answer.body}\n#{output}" unless answer.code == "200"

      answer.body
    end
  end

  # @param tool [String] a file of test/trials/tools
  # @param processes [Integer] one where the tool is asked what it saw
  # @yieldparam server [Served] which must end well
  def with_server(tool, processes: 1, environment: {})
    need_gem "bcrypt"
    variables = { "TRIAL_TOOL" => File.join(Trial::ROOT, "test/trials/tools/#{tool}.rb"), **environment }
    server = Served.new([*ServedProcess::HEDDLE, "serve", File.join(__dir__, "config.ru"), "-p", "0",
                         "-w", processes.to_s, "--no-access-log"], environment: variables)
    begin
      yield server
    ensure
      status = server.stop
    end
    assert_predicate status, :success?, server.output
    refute_match(/error|\[BUG\]/i, server.output)
  end

  # All kinds of work at once, several times, each answered as it should be.
  # @param more [Array<String>] further paths
  def work(server, more: [])
    paths = (KINDS.map { |kind| "work/#{kind}" } + more).flat_map { |path| [path] * ROUNDS }
    wrong = Thread::Queue.new
    Array.new(CLIENTS) do |number|
      Thread.new do
        paths.rotate(number * 5).each do |path|
          answer = server.ask(path)
          wrong << "#{path}: #{answer}" unless answer == (path[%r{work/(.+)}, 1] || "loaded")
        end
      end
    end.each(&:join)

    assert_empty wrong
  end
end

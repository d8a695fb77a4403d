# frozen_string_literal: true

# test: alone

require_relative "support/trial"
require "tmpdir"

# Ruby's debugger is attached to a loop under load: it stops there, shows and steps, and the program continues as if
# nothing had happened.
class TrialDebuggerTest < Minitest::Test
  include Trial

  PROGRAM = <<~'RUBY'
    require "debug/session"
    require "zlib"
    $stdout.sync = true
    DEBUGGER__.open_unix(sock_path: ARGV[0], nonstop: true)

    def step(number)
      answer = number * 2
      answer
    end

    def compute = 300_000.times.sum

    $done = false
    text = "text" * 50_000
    counts = Hash.new(0)
    work = {
      native: -> { abort "wrong" unless Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text },
      ruby: -> { compute },
      steps: -> { step(counts[:steps]) },
      sleep: -> { sleep 0.001 }
    }
    Heddle.run do
      work.each do |name, one|
        Heddle.async do
          until $done
            one.call
            counts[name] += 1
            sleep 0.002
          end
        end
      end
    end
    puts "ended #{work.keys.all? { |name| counts[name].positive? }}"
  RUBY

  # A command, and what the debugger answers.
  DIALOGUE = [
    [nil, /\(rdbg/],
    ["break Object#step", /#0 +BP - Method/],
    ["continue", /Stop by #0/],
    ["p number * 1000 + 7", /=> \d*0*7\b/],
    ["bt", /in 'Object#step'|Object#step/],
    ["info threads", /heddle offload|#0/],
    ["next", /=>#0/],
    ["p 40 + 2", /=> 42/],
    ["delete 0", /deleted|\(rdbg/],
    ["p $done = :done", /=> :done/]
  ].freeze

  def test_a_debugger_attaches_stops_shows_values_and_continues
    need_gem "debug"
    Dir.mktmpdir do |folder|
      socket = File.join(folder, "debug")
      program = Thread.new { protected_program(PROGRAM, socket) }
      wait_for(socket, program)
      talk(socket, program)

      assert_match(/^ended true$/, program.value)
    end
  end

  private

  def wait_for(socket, program)
    sleep 0.01 until File.socket?(socket) || !program.alive?
    flunk program.value unless program.alive?
  end

  def talk(socket, program)
    executable = Gem.bin_path("debug", "rdbg")
    command = [RbConfig.ruby, "-r#{ROOT}/bin/support/gem_paths.rb", "-e", "$stdout.sync = true; load ARGV.shift",
               executable, "--attach", socket]
    IO.popen({ "NO_COLOR" => "1", "TERM" => "dumb", "RUBYOPT" => nil }, command, "r+", err: %i[child out]) do |client|
      DIALOGUE.each do |say, answer|
        client.puts(say) if say
        hear(client, answer)
      end
      client.puts("continue")
      program.join
    end
  end

  def hear(client, answer)
    heard = +""
    deadline = now + PATIENCE
    until heard.gsub(/\e\[[\d;?]*[A-Za-z]/, "").match?(answer)
      flunk "the debugger said, instead of #{answer.inspect}:\n#{heard}" unless client.wait_readable(deadline - now)
      heard << client.readpartial(4096)
    end
  rescue EOFError
    flunk "the debugger left, instead of #{answer.inspect}:\n#{heard}"
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# frozen_string_literal: true

require "test_helper"
require "support/served_process"
require "tmpdir"

# A child that a request forks inherits nothing of the server: neither its sockets nor its signal handlers.
class ServedForkedChildTest < Minitest::Test
  APP = <<~RUBY
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/exit" then Process.wait(fork { sleep 0.001; exit 3 })
      when "/without_a_block" then (pid = fork) ? Process.wait(pid) : exit(4)
      when "/ends" then (pid = fork) ? Process.wait(pid) : (next [200, {}, ["of the child"]])
      when "/raises" then (pid = fork) ? Process.wait(pid) : ($stderr.reopen(File::NULL); raise "in the child")
      else
        reader, writer = IO.pipe
        pid = fork { $stderr.reopen(File::NULL); writer << "x"; sleep }
        reader.read(1)
        Process.kill(env["PATH_INFO"].delete("/"), pid)
        Process.wait(pid)
      end
      [200, {}, [$?.exitstatus.inspect, " ", $?.termsig.inspect]]
    end)
  RUBY

  def test_a_forked_child_ends_by_status_or_signal_and_the_server_keeps_serving
    Dir.mktmpdir do |folder|
      File.write(file = File.join(folder, "config.ru"), APP)
      [%w[fiber 1], %w[fiber 2], %w[thread 1], %w[thread 2], %w[single 1]].each do |mode, workers|
        served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", file, "--port", "0", "--workers", workers,
                                    "--mode", mode, "--control", "off", "--no-access-log", "-e", "none"])
        answers = %w[/exit /without_a_block /TERM /INT /ends /raises /exit].map { |path| served.get(path).body }

        assert_equal ["3 nil", "4 nil", "nil 15", "nil 2", "0 nil", "1 nil", "3 nil"], answers, mode
        assert_predicate served, :alive?
      ensure
        served&.stop
      end
    end
  end
end

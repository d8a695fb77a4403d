# frozen_string_literal: true

require "test_helper"
require "io/wait"
require "rbconfig"

# Trials of gems and tools that others wrote, as they are, with every protection on: each in a process of its own.
module Trial
  ROOT = File.expand_path("../../..", __dir__)
  # Switches on what a program can switch on; of a server, `protect` is on by itself.
  PROTECTED = "require 'heddle'; Heddle.enable :offload, :preempt; Heddle.enable :stall_report, threshold: 60\n"
  # Seconds that a program may take on a machine that is busy with other tests.
  PATIENCE = 120

  # Skips the test, by name, where a gem of the Gemfile is not installed. In CI a skipped test fails the run.
  def need_gem(name)
    skip "needs the gem #{name}: bin/setup --system" if Gem::Specification.find_all_by_name(name).empty?
  end

  # @return [String] the path of Debian's libjemalloc
  def need_library(name, package)
    Dir["/usr/lib/*/#{name}", "/usr/lib/#{name}"].first or skip "needs #{name} (Debian package #{package})"
  end

  # Runs a Ruby program with all protections on; it must succeed.
  # @param wrapped [String] put before all, even Heddle
  # @return [String] what it printed
  def protected_program(program, *arguments, env: {}, before: "")
    output, status = unprotected_program(before + PROTECTED + program, *arguments, env:)

    assert_predicate status, :success?, output
    output
  end

  # @return [Array(String, Process::Status)]
  def unprotected_program(program, *arguments, env: {})
    reader, writer = IO.pipe
    pid = spawn(env, RbConfig.ruby, "-I#{ROOT}/lib", "-r#{ROOT}/bin/support/gem_paths.rb",
                "-r#{__dir__}/hang_report.rb", "-e", program, *arguments, in: File::NULL, out: writer, err: writer)
    writer.close
    status = Process.detach(pid)
    output = Thread.new { reader.read }
    unless status.join(PATIENCE)
      Process.kill(:QUIT, pid)
      Process.kill(:KILL, pid) unless status.join(10)
      flunk "the program does not end:\n#{output.value}"
    end
    [output.value, status.value]
  end
end

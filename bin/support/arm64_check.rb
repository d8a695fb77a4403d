# frozen_string_literal: true

require "net/http"
require "rubygems/package"
require "tmpdir"
require_relative "arm64"

# Loads a precompiled gem for ARM64 under qemu-user: a loop that waits, and a server that answers a request.
class Arm64Check
  APPLICATION = 'run ->(env) { [200, {}, [RUBY_PLATFORM, " ", env["PATH_INFO"]]] }'
  # From the gems of bin/setup, because the Ruby that runs this may have no rack of its own.
  RACK = File.expand_path("../../vendor/bundle/ruby/*/gems/rack-3.*/lib", __dir__)
  # An emulated server takes its time.
  TIMEOUT = 180

  # @param gem [String]
  # @param arm64 [Arm64]
  def initialize(gem, arm64)
    @gem = gem
    @arm64 = arm64
  end

  # @return [Array<String>] what was seen
  # @raise [RuntimeError]
  def run
    Dir.mktmpdir("heddle-arm64") do |folder|
      Gem::Package.new(@gem).extract_files(folder)
      rack = Dir.glob(RACK).max or raise "there is no rack below vendor/bundle: run bin/setup"
      # With the size of stacks, `heddle` does not execute itself again, which the kernel could not do for ARM64.
      environment = { "RUBYOPT" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil, "RUBY_FIBER_VM_STACK_SIZE" => "1048576" }
      @command = [environment, *@arm64.ruby, "-I#{folder}/lib", "-I#{rack}"]
      [wait, serve(folder)]
    end
  end

  private

  def wait
    program = 'require "heddle"; Heddle.run { sleep 0.1 }; print RUBY_PLATFORM, " ", Heddle::Selector.best'
    output, status = Open3.capture2e(*@command, "-e", program)
    raise "Heddle.run fails:\n#{output}" unless status.success? && output.include?("aarch64-linux")

    "Heddle.run waits: #{output.lines.last}"
  end

  def serve(folder)
    File.write(File.join(folder, "config.ru"), APPLICATION)
    server = [*@command, File.join(folder, "exe/heddle"), "serve", "--workers", "0", "--bind", "127.0.0.1:0"]
    Open3.popen2e(*server, chdir: folder) do |input, output, process|
      input.close
      body = Net::HTTP.get(URI("#{address(output)}/hello"))
      raise "the server answers #{body.inspect}" unless body.match?(%r{aarch64-linux.* /hello\z})

      Process.kill(:TERM, process.pid)
      rest = Thread.new { output.read }
      raise "the server does not stop" unless process.join(TIMEOUT)
      raise "the server ends with #{process.value.exitstatus}:\n#{rest.value}" unless process.value.success?

      "heddle serve answers: #{body}"
    ensure
      Process.kill(:KILL, process.pid) if process.alive?
    end
  end

  def address(output)
    said = +""
    while output.wait_readable(TIMEOUT) && (line = output.gets)
      said << line
      found = line[%r{http://127\.0\.0\.1:\d+}] and return found
    end
    raise "the server does not start:\n#{said}"
  end
end

# frozen_string_literal: true

# A user's way, walked outside the checkout: the gem is built, or named as the argument, and installed into an empty
# GEM_HOME. Its demo and one of the examples are served from there and requested, and the commands of a beginner are
# given, some of them mistaken. `ruby bin/support/gem_check.rb` compiles the extension as a user's machine does; with
# --quick, as in .ci/run, without optimization, which takes half of the time.

require "etc"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "package"

# Steps that each end the program with a message when they fail.
class GemCheck
  ROOT = File.expand_path("../..", __dir__)
  GEM = ["-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV)", "--"].freeze

  def initialize(folder, quick:, gem: nil)
    @folder = folder
    @gem = gem
    @home = File.join(folder, "home")
    @environment = { "GEM_HOME" => @home, "GEM_PATH" => @home, "RUBYOPT" => nil, "RUBYLIB" => nil,
                     "BUNDLE_GEMFILE" => nil, "HEDDLE_NATIVE" => nil, "HEDDLE_WERROR" => nil,
                     "MAKEFLAGS" => "-j#{Etc.nprocessors}#{" ARCH_FLAG=-O0" if quick}" }
  end

  def run
    install(@gem || build)
    scheduler_loads_no_rack
    serve("heddle demo", ["demo"], "/" => /Heddle/i)
    serve("examples/plain", ["serve", File.join(ROOT, "examples/plain/config.ru")],
          "/" => /Hello from Heddle/, "/count?to=3&pause=0" => /3/)
    commands
  end

  private

  def build
    Package.new(@folder, rubies: []).build
    Dir.glob(File.join(@folder, "heddle-*.gem")).first
  end

  def install(gem)
    # With --local, what it needs is there before: looking for `heddle` itself, `gem` would read the registry's whole
    # index, for a minute.
    needs = Gem::Specification.load(File.join(ROOT, "heddle.gemspec")).runtime_dependencies
    ruby(*GEM, "install", "--no-document", *needs.map { |one| "#{one.name}:#{one.requirement.as_list.join(",")}" })
    ruby(*GEM, "install", "--no-document", "--local", "--bindir", File.join(@folder, "bin"), gem)
    names = Dir.children(File.join(@home, "gems")).map { |name| name[/\A(.*)-\d/, 1] }.sort
    check("the gem brings rack and nothing else", names == %w[heddle rack], names.inspect)
    check("the gem has no documentation pages", Dir.glob(File.join(@home, "gems/heddle-*/docs")).empty?)
    check("the extension is there", extensions.any?)
    check("what it was compiled from leaves no objects", Dir.glob(File.join(@home, "**/*.o")).empty?)
  end

  def extensions = Dir.glob(File.join(@home, "gems/heddle-*/lib/heddle/{,*/}heddle.#{RbConfig::CONFIG["DLEXT"]}"))

  def scheduler_loads_no_rack
    loaded = ruby("-e", 'require "heddle/scheduler"; puts $LOADED_FEATURES.grep(/rack/)')
    check("heddle/scheduler loads no rack", loaded.strip.empty?, loaded)
  end

  def serve(title, arguments, requests)
    command = [File.join(@folder, "bin/heddle"), *arguments, "--port", "0"]
    Open3.popen2e(@environment, RbConfig.ruby, *command, chdir: @folder) do |input, output, process|
      input.close
      address = address_from(output) or check("#{title} starts", false)
      requests.each { |path, pattern| request(title, "#{address}#{path}", pattern) }
      Process.kill(:TERM, process.pid)
      rest = Thread.new { output.read }
      check("#{title} stops in order", process.join(30) && process.value.success?, process.value.inspect)
      rest.join
    ensure
      process.alive? && Process.kill(:KILL, process.pid)
    end
  end

  # Those of a beginner, in a folder with nothing but a config.ru; and some of the mistakes, which show no backtrace.
  def commands
    Dir.mkdir(folder = File.join(@folder, "beginner"))
    File.write(File.join(folder, "config.ru"), 'run ->(_env) { [200, {}, ["hello"]] }')
    heddle("init", folder, 0 => %r{config/heddle\.rb})
    heddle("check", folder, 0 => /stop_timeout/)
    heddle("doctor", folder, 0 => /heddle/i)
    heddle("serve missing.ru", folder, 1 => /there is no file missing\.ru/)
    heddle("serve -b tls://127.0.0.1:0 --tls-cert missing.pem", folder, 1 => /missing\.pem does not exist/)
    File.write(File.join(folder, "config/heddle.rb"), "wrokers 3\n")
    heddle("serve", folder, 2 => %r{config/heddle\.rb:1: .*Did you mean workers})
  end

  def heddle(command, folder, expected)
    program = File.join(@folder, "bin/heddle")
    output, status = Open3.capture2e(@environment, RbConfig.ruby, program, *command.split, chdir: folder)
    good = expected.all? { |code, pattern| status.exitstatus == code && pattern.match?(output) }
    check("heddle #{command}", good && !output.match?(/\.rb:\d+:in /), "#{status.inspect}\n#{output}")
  end

  def address_from(output)
    said = +""
    while output.wait_readable(30) && (line = output.gets)
      said << line
      return Regexp.last_match(0).chomp("/") if line =~ %r{http://[^\s/]+/?}
    end
    warn said
  end

  def request(title, url, pattern)
    body, status = Open3.capture2("curl", "-sS", "--fail", "--max-time", "20", url)
    check("#{title} answers #{url}", status.success? && body.match?(pattern), body[0, 300])
  end

  def ruby(*command, chdir: @folder)
    output, status = Open3.capture2e(@environment, RbConfig.ruby, *command, chdir:)
    check(command.grep_v(/\A-/).join(" "), false, output) unless status.success?
    output
  end

  def check(what, good, details = nil)
    abort "gem check: NOT so: #{what}\n#{details}" unless good
    puts "gem check: #{what}"
  end
end

quick = ARGV.delete("--quick")
Dir.mktmpdir("heddle-gem") { |folder| GemCheck.new(folder, quick:, gem: ARGV.first).run }

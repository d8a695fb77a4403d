# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# Where rbspy finds the VM of a Ruby ≥ 3.3: two variables that libruby does not export, so that a library whose symbol
# table was stripped, as distributions do it, has to be told them. Here they are read off functions that are exported
# and use them, and given to a copy of the library.
class RubyWithSymbols
  ROOT = File.expand_path("../../..", __dir__)
  # The variable, and an exported function whose first access to a variable is to this one.
  VARIABLES = { "ruby_current_vm_ptr" => "ruby_vm_at_exit", "ruby_global_symbols" => "rb_sym_immortal_count" }.freeze

  # @return [Hash{String => String}] the environment in which this Ruby has its symbols
  # @raise [RuntimeError] where they can't be found
  def self.environment
    library = File.read("/proc/self/maps")[%r{/\S*libruby\S*}] or return {}
    new(library).environment
  end

  def initialize(library)
    @library = library
  end

  def environment
    return {} if run("nm", @library, "--quiet").match?(/ ruby_current_vm_ptr$/)
    raise "only for x86-64" unless RbConfig::CONFIG["host_cpu"] == "x86_64"

    folder = File.join(ROOT, "tmp/test-rbspy", "#{RUBY_VERSION}-#{RbConfig::CONFIG["arch"]}")
    copy = File.join(folder, RbConfig::CONFIG["LIBRUBY_SO"][/\A.*\.so\.\d+\.\d+/])
    FileUtils.mkdir_p(folder)
    run("objcopy", *VARIABLES.flat_map { |name, function| added(name, address(function)) }, @library, copy)
    { "LD_LIBRARY_PATH" => folder }
  end

  private

  def address(function)
    start = run("nm", "-D", @library)[/^(\h+) T #{function}(?:@|$)/, 1] or raise "no #{function} in #{@library}"
    code = run("objdump", "-d", "--no-show-raw-insn", "--start-address=0x#{start}",
               "--stop-address=0x#{(start.hex + 64).to_s(16)}", @library)
    code[/mov +0x\h+\(%rip\),.*# (\h+) /, 1]&.hex or raise "no variable in #{function} of #{@library}"
  end

  # @return [Array<String>] objcopy's arguments
  def added(name, address)
    section, start = sections.find { |_, from, size| (from...(from + size)).cover?(address) }
    raise "#{name} is nowhere" unless section

    ["--add-symbol", "#{name}=#{section}:0x#{(address - start).to_s(16)},global,object"]
  end

  # @return [Array<Array(String, Integer, Integer)>] name, address and size
  def sections
    @sections ||= run("objdump", "-h", @library).scan(/^ *\d+ (\S+) +(\h+) +(\h+) /)
                                                .map { |name, size, start| [name, start.hex, size.hex] }
  end

  def run(*command)
    text, status = Open3.capture2e({ "LC_ALL" => "C" }, *command)
    raise "#{command.join(" ")}: #{text}" unless status.success?

    text
  end
end

# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# Debian 13's Ruby 3.3 for ARM64 on an x86-64 Debian: unpacked into tmp/arm64, run by qemu-user, and the target of
# bin/package's cross compiler. Nothing of it is installed.
class Arm64
  ROOT = File.expand_path("../..", __dir__)
  PLATFORM = "aarch64-linux-gnu"
  SERIES = "3.3"
  # What the stage needs of this machine, and the packages that have it.
  TOOLS = { "aarch64-linux-gnu-gcc" => "gcc-aarch64-linux-gnu", "qemu-aarch64-static" => "qemu-user-static",
            "apt-get" => "apt", "dpkg-deb" => "dpkg" }.freeze
  PACKAGES = %w[libc6 libgcc-s1 zlib1g zlib1g-dev libssl3t64 libcrypt1 libffi8 libgmp10 libyaml-0-2 libzstd1 ruby3.3
                libruby3.3 ruby3.3-dev].freeze
  KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

  # Loaded before mkmf by the Ruby of this machine: its configuration becomes that of the other one. A library for
  # ARM64 may need a newer glibc than the cross compiler has, which matters to what is run only.
  CONFIGURATION = <<~'RUBY'
    require "rbconfig"
    own = RbConfig::CONFIG.values_at("bindir", "ruby_install_name")
    root = ENV.fetch("HEDDLE_ARM64")
    Object.__send__(:remove_const, :RbConfig)
    load "#{root}/usr/lib/aarch64-linux-gnu/ruby/3.3.0/rbconfig.rb"
    RbConfig::CONFIG["bindir"], RbConfig::CONFIG["ruby_install_name"] = own
    { "CPPFLAGS" => "-I#{root}/usr/include",
      "LDFLAGS" => "-L#{root}/usr/lib/aarch64-linux-gnu -Wl,--allow-shlib-undefined" }
      .each { |name, value| RbConfig::CONFIG[name] = RbConfig::MAKEFILE_CONFIG[name] = value }
  RUBY

  # @return [Array<String>] Debian packages whose programs are missing here
  def self.missing
    folders = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
    TOOLS.reject { |name, _| folders.any? { |folder| File.executable?(File.join(folder, name)) } }.values
  end

  # @return [String] of the unpacked files
  attr_reader :folder

  def initialize(folder = File.join(ROOT, "tmp/arm64"))
    @folder = folder
  end

  # Downloads and unpacks what is not there yet.
  # @return [Arm64]
  def prepare
    return self if File.exist?(complete)

    FileUtils.rm_rf(@folder)
    settings = apt_settings
    run("apt-get", *settings, "update")
    run("apt-get", *settings, "download", *PACKAGES, chdir: File.join(@folder, "packages"))
    Dir.glob(File.join(@folder, "packages/*.deb")).each { |package| run("dpkg-deb", "-x", package, @folder) }
    File.symlink("usr/lib", File.join(@folder, "lib")) # where programs look for their loader
    File.write(File.join(@folder, "configuration.rb"), CONFIGURATION)
    File.write(complete, "")
    self
  end

  # @param ruby [String] a Ruby 3.3 of this machine
  # @return [Hash{String => String}] the environment in which it compiles for ARM64
  def environment
    { "HEDDLE_ARM64" => @folder, "RUBYOPT" => "-r#{File.join(@folder, "configuration.rb")}",
      "CC" => [*("ccache" if ENV["CC"].to_s.start_with?("ccache")), "#{PLATFORM}-gcc"].join(" ") }
  end

  # @return [Array<String>] its Ruby, emulated
  def ruby = ["qemu-aarch64-static", "-L", @folder, File.join(@folder, "usr/bin/ruby#{SERIES}")]

  private

  def complete = File.join(@folder, "complete")

  # Lists and packages of its own: the machine's stay as they are.
  def apt_settings
    %w[apt/lists/partial apt/archives/partial packages].each { |name| FileUtils.mkdir_p(File.join(@folder, name)) }
    sources = File.join(@folder, "apt/sources.list")
    File.write(sources, "deb [signed-by=#{KEYRING}] #{mirror} trixie main\n")
    File.write(status = File.join(@folder, "apt/status"), "")
    { "APT::Architecture" => "arm64", "APT::Architectures" => "arm64", "APT::Sandbox::User" => "root",
      "Acquire::Languages" => "none", "Dir::Etc::sourcelist" => sources, "Dir::Etc::sourceparts" => File::NULL,
      "Dir::Etc::preferencesparts" => File::NULL, "Dir::State" => File.join(@folder, "apt"),
      "Dir::State::status" => status, "Dir::Cache" => File.join(@folder, "apt") }
      .flat_map { |name, value| ["-o", "#{name}=#{value}"] }
  end

  # As bin/support/packages.sh finds it.
  def mirror
    script = ". #{ROOT}/bin/support/packages.sh; debian_mirror"
    found, = Open3.capture2("bash", "-c", script)
    found.strip.then { |text| text.empty? ? raise("no mirror of Debian is known to apt") : text }
  end

  def run(*command, **)
    output, status = Open3.capture2e(*command, **)
    raise "#{command.first(2).join(" ")} failed:\n#{output}" unless status.success?
  end
end

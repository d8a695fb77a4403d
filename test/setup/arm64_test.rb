# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require_relative "../../bin/support/arm64"

# What bin/package's stage for ARM64 does before it compiles. The stage itself loads the gem under qemu-user.
class Arm64Test < Minitest::Test
  def test_missing_programs_are_named_by_their_packages
    path = ENV.fetch("PATH")
    ENV["PATH"] = "/nowhere"

    assert_equal %w[gcc-aarch64-linux-gnu qemu-user-static apt dpkg], Arm64.missing
  ensure
    ENV["PATH"] = path
  end

  def test_ruby_of_this_machine_has_the_other_ones_configuration_and_stays_itself
    Dir.mktmpdir do |folder|
      config = File.join(folder, "usr/lib/aarch64-linux-gnu/ruby/3.3.0/rbconfig.rb")
      FileUtils.mkdir_p(File.dirname(config))
      File.write(config, 'module RbConfig; MAKEFILE_CONFIG = {}; CONFIG = { "arch" => "aarch64-linux-gnu" }; ' \
                         'def self.ruby = CONFIG.values_at("bindir", "ruby_install_name").join("/"); end')
      File.write(File.join(folder, "configuration.rb"), Arm64::CONFIGURATION)
      output, = Open3.capture2e(Arm64.new(folder).environment, RbConfig.ruby, "--disable=gems", "-e",
                                'puts RbConfig.ruby, RbConfig::CONFIG.values_at("arch", "CPPFLAGS")')

      assert_equal [RbConfig.ruby, "aarch64-linux-gnu", "-I#{folder}/usr/include"], output.lines(chomp: true)
    end
  end
end

# frozen_string_literal: true

# bin/package's command line. The first argument names the file in which bin/setup lists the Rubies that are ready.

require_relative "package"
require_relative "arm64_check"
require "optparse"

rubies_file = ARGV.first
# RubyGems gives the precompiled gem its name.
builder = Package::Interpreter.list(rubies_file).find(&:precompiled?)
exec(builder.path, __FILE__, *ARGV) if builder && Gem.rubygems_version < Package::LEAST_RUBYGEMS
ARGV.shift
source = twice = false
arm64 = true
OptionParser.new do |options|
  options.on("--source") { source = true }
  options.on("--twice") { twice = true }
  options.on("--no-arm64") { arm64 = false }
end.parse!
folder = File.expand_path(ARGV.shift || "pkg")

rubies = Package::Interpreter.list(rubies_file)
missing = Arm64.missing
arm64 &&= !source && missing.empty? && Arm64.new
puts "no gem for ARM64: as root, apt-get install #{missing.join(" ")}" if missing.any? && !source
begin
  Package.new(folder, rubies: source ? [] : rubies, arm64: arm64 || nil).run(twice:)
  Dir.glob(File.join(folder, "*.gem")).each do |gem|
    if gem.include?(Arm64::PLATFORM)
      puts "#{File.basename(gem)} under qemu-user", Arm64Check.new(gem, arm64).run
      next
    end
    able = gem.include?(Package::PLATFORM) ? rubies.select(&:precompiled?) : rubies
    able.each do |ruby|
      puts "#{File.basename(gem)} on Ruby #{ruby.version}"
      system(ruby.path, File.join(__dir__, "gem_check.rb"), gem) || exit(1)
    end
    (rubies - able).each { |ruby| puts "not tried on Ruby #{ruby.version}: its RubyGems is #{ruby.rubygems}" }
  end
rescue Package::Error => e
  abort "bin/package: #{e.message}"
end

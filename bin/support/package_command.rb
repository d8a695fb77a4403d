# frozen_string_literal: true

# bin/package's command line. The first argument names the file in which bin/setup lists the Rubies that are ready.

require_relative "package"
require "optparse"

rubies_file = ARGV.first
# RubyGems gives the precompiled gem its name.
builder = Package::Interpreter.list(rubies_file).find(&:precompiled?)
exec(builder.path, __FILE__, *ARGV) if builder && Gem.rubygems_version < Package::LEAST_RUBYGEMS
ARGV.shift
source = twice = false
OptionParser.new do |options|
  options.on("--source") { source = true }
  options.on("--twice") { twice = true }
end.parse!
folder = File.expand_path(ARGV.shift || "pkg")

rubies = Package::Interpreter.list(rubies_file)
begin
  Package.new(folder, rubies: source ? [] : rubies).run(twice:)
  Dir.glob(File.join(folder, "*.gem")).each do |gem|
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

# frozen_string_literal: true

# A Ruby that bin/setup made ready, as the tests need to know it.
TestInterpreter = Data.define(:version, :abi, :path, :selectors, :environment) do
  # @param file [String] what `bin/setup --rubies-to` wrote
  # @return [Array<TestInterpreter>]
  def self.list(file)
    File.readlines(file, chomp: true).map do |line|
      _, _, version, abi, path = line.split("\t")
      root = File.expand_path("../..", __dir__)
      answer = IO.popen([{ "HEDDLE_SELECTOR" => nil }, path, "-Ilib", "-e", self::PROBE], chdir: root, &:read)
      bundler, selectors = answer.lines(chomp: true)
      gems = File.join(root, "vendor/bundle/ruby", abi)
      # BUNDLER_VERSION: an example's lock file must not make Bundler fetch the version that wrote it.
      environment = { "GEM_HOME" => gems, "GEM_PATH" => gems, "BUNDLER_VERSION" => bundler }
      new(version:, abi:, path:, selectors: selectors.to_s.split, environment:)
    end
  end
end

# Prints the version of Bundler, then the selectors that work here, the default one first.
TestInterpreter::PROBE = <<~RUBY
  require "bundler"
  puts Bundler::VERSION
  begin
    require "heddle/scheduler"
    best = Heddle::Selector.best.to_s
    puts [best, *(Heddle::Selector.available.map(&:to_s) - [best])].join(" ")
  rescue LoadError, NameError => e
    warn "the selectors are not known: \#{e.message}"
  end
RUBY

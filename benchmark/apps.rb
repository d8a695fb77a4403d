# frozen_string_literal: true

# bin/bench apps FOLDER… [options]
#
# Real applications: each FOLDER is a work tree of one, with its gems installed and its database filled
# (docs/benchmarks/applications.md says how). It is served by its own server and by Heddle, both with the same number of
# workers, and both with the defaults or the application's own settings else. Twenty pages are found by following links,
# and compared. Then one server after the other has 1, 8 and 32 clients, in turns, while the other one is idle.

require_relative "../bin/support/gem_paths"
require "optparse"
require_relative "support/bench"
require_relative "apps/application"
require_relative "apps/crawl"
require_relative "apps/load"
require_relative "apps/report"

module Bench
  # Applications of others, as they are.
  module Apps
    Options = Struct.new(:ruby, :workers, :clients, :rounds, :seconds, :pages, :markdown)

    # @param arguments [Array<String>]
    # @return [Array(Array<String>, Options)] folders and settings
    def self.parse(arguments)
      options = Options.new(RbConfig.ruby, 2, [1, 8, 32], 3, 8, 20, false)
      parser = OptionParser.new do |words|
        words.banner = "Usage: bin/bench apps FOLDER… [options]"
        words.on("--ruby PATH", "of the applications (#{options.ruby})") { |path| options.ruby = path }
        words.on("--workers N", Integer, "of each server (#{options.workers})") { |count| options.workers = count }
        words.on("--clients LIST", Array, "1,8,32") { |list| options.clients = list.map { |text| Integer(text) } }
        words.on("--rounds N", Integer, options.rounds.to_s) { |count| options.rounds = count }
        words.on("--seconds N", Integer, "of each load (#{options.seconds})") { |count| options.seconds = count }
        words.on("--pages N", Integer, "(#{options.pages})") { |count| options.pages = count }
        words.on("--markdown", "print tables for docs/benchmarks/applications.md") { options.markdown = true }
      end
      folders = parser.parse(arguments)
      abort parser.help if folders.empty?
      [folders, options]
    end

    # @return [Boolean] whether both servers sent the same pages
    def self.measure(folder, options)
      application = Application.new(folder, ruby: options.ruby, workers: options.workers)
      servers = application.servers
      servers.each_value(&:start)
      count = application.listed? ? application.start_paths.size : options.pages
      crawl = Crawl.new(*servers.values, application.start_paths, count)
      paths = crawl.paths
      report = Report.new(application, crawl)
      servers.each_value { |server| Load.warm(server, paths, seconds: options.seconds) }
      options.clients.each do |clients|
        Interleaving.each(servers.keys, options.rounds) do |_, name|
          Load.settle(servers.values)
          report.add(name, clients, Load.run(servers[name], paths, clients:, seconds: options.seconds))
        end
      end
      servers.each { |name, server| report.memory(name, server.pss_megabytes) }
      puts options.markdown ? report.to_markdown : report.to_text
      crawl.differing.empty?
    ensure
      servers&.each_value(&:stop)
    end
  end
end

if $PROGRAM_NAME == __FILE__
  folders, options = Bench::Apps.parse(ARGV)
  exit(folders.map { |folder| Bench::Apps.measure(folder, options) }.all?)
end

# frozen_string_literal: true

require "tmpdir" # here: a Ractor of Ruby 3.3 can load nothing

module Heddle
  class Server
    module Options
      # Where the bodies of requests go.
      BODIES = [
        Option.new(name: :body_folder, unit: :path, argument: "FOLDER", default: ->(_) { Dir.tmpdir },
                   default_words: "the system's temporary folder", example: 'body_folder "/var/tmp"',
                   text: "where the bodies of requests are written that do not fit into memory (body_buffer)",
                   details: "The files have no name and are gone when their request is over, or the process. Where " \
                            "the temporary folder is in memory (tmpfs), name one on a disk. See " \
                            "[Request bodies](bodies.md)."),
        Option.new(name: :stream_bodies, unit: :list, argument: "PATHS", none: "off", default: [],
                   example: 'stream_bodies "/uploads", "/grpc.Service"',
                   text: "the requests whose application reads the body while it comes: all, off, or those of these " \
                         "paths and below",
                   details: "For others the application is called when the body is complete, and reading it never " \
                            "waits. Streaming is for answers that begin before the request has ended (gRPC), and for " \
                            "refusing a body before it is sent. An application that reads such a body waits for the " \
                            "client, and in mode fiber other requests run meanwhile. A native library must not read " \
                            "such a body itself (Nokogiri::XML(env[\"rack.input\"])): read it first.")
      ].freeze
    end
  end
end

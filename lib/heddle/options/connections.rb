# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # How many connections there are, and how long one may do nothing.
    CONNECTIONS = [
      Option.new(name: :max_connections, unit: :count, default: 0, range: 0..10_000_000, advanced: true,
                 default_words: "0: by memory and descriptors", example: "max_connections 5_000",
                 details: "With 0 each worker takes as many as fit into its share of the memory (of the container, " \
                          "or of the machine): about 5,300 in 1 GiB with one worker. A connection counts with " \
                          "112 KiB and body_buffer, its maximum before a request runs, and http2_memory counts " \
                          "once for all. Descriptors limit it, too, less 64 for the application. " \
                          "An idle connection uses much less, so a " \
                          "server of many WebSockets may set more. At the limit new connections wait in the " \
                          "system's queue (backlog) until one ends, and a line in the log says so.",
                 text: "how many connections at once, in each worker; 0: as many as memory and descriptors allow"),
      Option.new(name: :descriptor_limit, unit: :word, default: :hard, choices: %i[hard soft], advanced: true,
                 example: "descriptor_limit :soft",
                 details: "A limit on connections follows from it. Programs that the application starts (spawn, " \
                          "system, popen, exec) get the former limit back, except on macOS. The function " \
                          "select(2) of C has no room for descriptors from 1,024 on: a library that passes such a " \
                          "one to FD_SET writes beyond its memory. With one that does (old resolvers, SNMP and " \
                          "LDAP clients) choose soft, and set the soft limit to 1,024 (ulimit -Sn).",
                 text: "whether the limit on open descriptors (RLIMIT_NOFILE) is raised to the hard limit, or " \
                       "stays as it was: soft"),
      Option.limit(:idle_timeout, :seconds, 75, 0.001,
                   "how long a connection may wait without a request; then it is closed"),
      Option.limit(:write_timeout, :seconds, 30, 0.001,
                   "how long a client may take nothing of an answer; then the connection is closed"),
      Option.limit(:linger_timeout, :seconds, 2, 0,
                   "how long a refused client may go on sending, so that it reads the answer and sees no reset"),
      Option.limit(:linger_limit, :bytes, 4_194_304, 0,
                   "how much of what a refused client goes on sending is read and thrown away")
    ].freeze
  end
end

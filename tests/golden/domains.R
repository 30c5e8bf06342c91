# Golden values by domain: Rscript domains.R, in this folder. Needs survey. Writes domains.csv.
suppressMessages(library(survey))
records <- read.csv("records.csv"); draws <- read.csv("s_ppswr.csv")
N <- nrow(records)
records$source <- c("A", "B", "C")[records$record %% 3 + 1]            # a variable of records
n <- table(records$true, records$pred)
size <- rowSums(n); m <- colSums(n)
piece <- n[cbind(as.character(records$true), as.character(records$pred))]
records$TP <- (piece - 1) / 2                                          # shares of links by record
records$PAIR <- (m[as.character(records$pred)] - 1) / 2
records$T2 <- (size[as.character(records$true)] - 1) / 2
records$ENT <- 1 / size[as.character(records$true)]
columns <- c("TP", "PAIR", "T2", "ENT")
out <- data.frame()
say <- function(case, domain, what, est, se)
  out <<- rbind(out, data.frame(case, domain, quantity = what, est = as.numeric(est), se = as.numeric(se)))

# records by source: the rows of each drawn entity, one cluster of rows per draw
rows <- do.call(rbind, lapply(seq_len(nrow(draws)), function(s) {
  x <- records[records$true == draws$cluster[s], ]; x$draw <- s; x$w <- draws$w[s]; x
}))
rows$one <- 1
design <- svydesign(ids = ~draw, weights = ~w, data = rows)
for (top in c("TP", "ENT")) {
  below <- if (top == "TP") c("PAIR", "T2") else "one"
  for (b in below) {
    by <- svyby(as.formula(paste0("~", top)), ~source, design, denominator = as.formula(paste0("~", b)), svyratio)
    for (i in seq_len(nrow(by))) say("svyby_records", by$source[i], paste0(top, "/", b), by[i, 2], SE(by)[i])
    vc <- svyby(as.formula(paste0("~", top)), ~source, design, denominator = as.formula(paste0("~", b)), svyratio, covmat = TRUE)
    for (i in 2:3) {
      d <- svycontrast(vc, setNames(c(-1, 1), c("A", c("A", "B", "C")[i])))
      say("svycontrast_records", paste0(c("A", "B", "C")[i], " - A"), paste0(top, "/", b), coef(d), SE(d))
    }
  }
}

# entities by a variable, each draw one row with the share of a record
draws$kind <- c("x", "y", "z")[draws$cluster %% 3 + 1]
records$kind <- c("x", "y", "z")[records$true %% 3 + 1]
draws$p <- N / nrow(draws)
for (y in c("TP", "PAIR", "T2")) draws[[paste0("r", y)]] <- draws[[y]] / draws$size
draws$rENT <- 1 / draws$size; draws$one <- 1
single <- svydesign(ids = ~1, weights = ~p, data = draws)
by <- svyby(~rTP, ~kind, single, denominator = ~rPAIR, svyratio)
for (i in 1:3) say("svyby_entities", by$kind[i], "TP/PAIR", by[i, 2], SE(by)[i])
post <- postStratify(single, ~kind, as.data.frame(table(kind = records$kind), responseName = "Freq"))
for (q in list(c("rTP", "rPAIR"), c("rTP", "rT2"), c("rENT", "one"))) {
  r <- svyratio(as.formula(paste0("~", q[1])), as.formula(paste0("~", q[2])), post)
  say("postStratify", "", paste0(sub("^r", "", q[1]), "/", sub("^r", "", q[2])), coef(r), SE(r))
}
t <- svytotal(~rENT, post); say("postStratify", "", "ENT", coef(t), SE(t))
say("version", as.character(packageVersion("survey")), R.version.string, 0, 0)
write.csv(format(out, digits = 17), "domains.csv", row.names = FALSE, quote = c(1, 2, 3))
